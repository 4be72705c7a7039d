#pragma once

// How a warp reads its operands from tiles in shared memory for products on tensor cores.

#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/layout/attention_tile.h"

namespace lockstep::cuda {

/// Lane (g, t) of a warp, in the terms of layout/mma_fragment.h.
__device__ inline int mma_lane_g() {
  return static_cast<int>(threadIdx.x) % 32 / 4;
}
__device__ inline int mma_lane_t() {
  return static_cast<int>(threadIdx.x) % 4;
}

/// A lane's places in a tile. They are constants away from four: the key repeats every eight rows,
/// and of the chunks' numbers it permutes the last three bits, of which `pair` is the third.
template <int kHeadDim>
struct MmaTile {
  using Key = layout::MmaTileKey;

  /// Chunk 4 pair + t of row 8 n + g, in floats: this and row_offset.
  static __device__ int row_share(int pair) {
    return layout::row_chunk<Key, kHeadDim>(mma_lane_g(), mma_lane_t() + pair % 2 * 4);
  }
  static constexpr __device__ int row_offset(int n, int pair) {
    return 8 * n * kHeadDim + pair / 2 * 32;
  }
  /// Chunk g of row 2 t + odd.
  static __device__ int column_share(int odd) {
    return layout::row_chunk<Key, kHeadDim>(2 * mma_lane_t() + odd, mma_lane_g());
  }
  static __device__ uint4 load4(const float* from) { return *reinterpret_cast<const uint4*>(from); }
  static __device__ uint4 rounded(uint4 values) {
    return make_uint4(round_to_tf32(values.x), round_to_tf32(values.y), round_to_tf32(values.z),
                      round_to_tf32(values.w));
  }
};

/// A warp's 16 kFragments rows of a tile as left operand of scores. Where kHold, its fragments stay
/// in registers, else they are read again for each tile of the right operand.
template <int kHeadDim, int kFragments, bool kHold>
class MmaLeft {
 public:
  /// Two steps of k of each of the warp's fragments of A.
  struct StepPair {
    uint32_t a[kFragments][2][4];

    __device__ void load(const float* rows, int pair) {
#pragma unroll
      for (int m = 0; m < kFragments; ++m) {
        const uint4 upper =
            Tile::load4(rows + Tile::row_share(pair) + Tile::row_offset(2 * m, pair));
        const uint4 lower =
            Tile::load4(rows + Tile::row_share(pair) + Tile::row_offset(2 * m + 1, pair));
        const uint32_t values[2][4] = {{upper.x, lower.x, upper.y, lower.y},
                                       {upper.z, lower.z, upper.w, lower.w}};
#pragma unroll
        for (int step = 0; step < 2; ++step) {
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            a[m][step][r] = round_to_tf32(values[step][r]);
          }
        }
      }
    }
  };

  __device__ explicit MmaLeft(const float* tile_rows) : rows_(tile_rows) {
    if constexpr (kHold) {
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        held_[pair].load(rows_, pair);
      }
    }
  }
  __device__ StepPair steps(int pair) const {
    if constexpr (kHold) {
      return held_[pair];
    } else {
      StepPair read;
      read.load(rows_, pair);
      return read;
    }
  }

 private:
  using Tile = MmaTile<kHeadDim>;
  static constexpr int kPairs = kHeadDim / 16;

  StepPair held_[kHold ? kPairs : 1];
  const float* rows_;
};

}  // namespace lockstep::cuda
