#pragma once

// A warpgroup's products of tiles of 64 x 64. Scores are sums of products over a head's elements,
// which are contiguous. What scores are multiplied by is summed over tokens: rounded scores are the
// left operand, in registers, and the right one comes from transposed copies
// (transposed_heads.cuh).

#include <cmath>

#include "kernels/cuda/attention/tile_ring.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/wgmma/rows.cuh"

namespace lockstep::cuda {

/// Step `step` of eight of k in a tile of 64 x 64.
__device__ inline uint64_t tile_operand(uint32_t tile, int step) {
  return warpgroup_operand(tile + step / 4 * WgmmaAttentionShape::kPanelBytes) +
         step % 4 * kWarpgroupStep;
}

/// 64 x 64 sums of a warpgroup: ptx/wgmma.cuh has which a lane holds.
using TileSums = float[kWgmmaHeadDim / 2];

/// The upper of a lane's two rows of TileSums, in a tile of 64; the other is eight below.
__device__ inline int tile_row() {
  return static_cast<int>(threadIdx.x) / 32 % 4 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
}

/// A warp's 16 rows of a tile, in registers.
struct HeldTile {
  RowFragments panels[2];

  __device__ void load(uint32_t tile) {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    panels[0].load<Major::kK>(tile, warp);
    panels[1].load<Major::kK>(tile + WgmmaAttentionShape::kPanelBytes, warp);
  }
};

/// Starts d = a · bᵀ.
__device__ inline void start_scores(TileSums& d, const HeldTile& a, uint32_t b_tile) {
#pragma unroll
  for (int step = 0; step < 8; ++step) {
    warpgroup_mma_tf32<kWgmmaHeadDim>(d, a.panels[step / 4].steps[step % 4],
                                      tile_operand(b_tile, step), step > 0);
  }
}

/// The left operand that rounded scores are: one fragment for each eight tokens.
using ScoreFragments = WarpgroupFragment[8];

/// Starts d += a · b, of b's transposed copy.
__device__ inline void start_sums(TileSums& d, const ScoreFragments& a, uint32_t b_tile) {
#pragma unroll
  for (int step = 0; step < 8; ++step) {
    warpgroup_mma_tf32<kWgmmaHeadDim>(d, a[step], tile_operand(b_tile, step));
  }
}

__device__ inline WarpgroupFragment score_fragment(const float (&scores)[4]) {
  const auto word = [&](int i) { return round_to_tf32(__float_as_uint(scores[i])); };
  return {{word(0), word(2), word(1), word(3)}};
}

/// Rounds scores to be a left operand.
__device__ inline void round_scores(ScoreFragments& to, const TileSums& scores) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    to[j] =
        score_fragment({scores[4 * j], scores[4 * j + 1], scores[4 * j + 2], scores[4 * j + 3]});
  }
}

/// Leaves no weight to the scores for which hidden(row, column).
template <class Hidden>
__device__ void mask_scores(TileSums& s, Hidden hidden) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = tile_row();
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (hidden(row + e / 2 * 8, 8 * j + lane % 4 * 2 + e % 2)) {
        s[4 * j + e] = -INFINITY;
      }
    }
  }
}

/// Writes 64 rows, scaled by the factors of a lane's two; `to` is the first one's.
__device__ inline void store_tile(const TileSums& sums, const float (&factors)[2], float* to,
                                  int64_t stride) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = tile_row();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float* const at = to + (row + half * 8) * stride + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      *reinterpret_cast<float2*>(at + 8 * j) = make_float2(
          sums[4 * j + 2 * half] * factors[half], sums[4 * j + 2 * half + 1] * factors[half]);
    }
  }
}

}  // namespace lockstep::cuda
