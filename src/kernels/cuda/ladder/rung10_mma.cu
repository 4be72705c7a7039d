// Rung 10, mma.sync: the tensor cores by their own instruction, with tiles stored in the order of
// its fragments.
//
// Knowing which lane holds which element, the staging stores each 16 x 8 piece lane by lane: a
// fragment is one 16-byte load per lane. Filling such a tile element by element would be 8-way
// (K-major) or 16-way (MN-major) bank-conflicted; an XOR of the lane with a key of the axis that
// the filling warp walks makes it 2-way (kernels/layout/swizzle.h). What it buys most is registers:
// 64 x 32 warp tiles without spilling, and an epilogue that knows its columns.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"
#include "kernels/cuda/ladder/tile_load.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/layout/mma_fragment.h"
#include "kernels/layout/tile_shape.h"

namespace lockstep {
namespace {

using namespace cuda;
using layout::Role;

constexpr int kTile = layout::FragmentTile::kExtent;
constexpr int kDepth = layout::FragmentTile::kDepth;
constexpr int kBlockThreads = layout::FragmentTile::kThreads;
constexpr int kWarpM = 64;
constexpr int kWarpN = 32;
constexpr int kFragmentsM = kWarpM / 16;
constexpr int kFragmentsN = kWarpN / 16;  // pairs of n8 fragments

template <Role kRole, Major kMajor>
__device__ void store_fragments(float* tile,
                                const TileRegisters<kTile, kDepth, kBlockThreads, kMajor>& share) {
#pragma unroll
  for (int i = 0; i < share.kCount; ++i) {
    const float values[4] = {share.values[i].x, share.values[i].y, share.values[i].z,
                             share.values[i].w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int e = share.place(i).extent + (kMajor == Major::kMN ? j : 0);
      const int d = share.place(i).depth + (kMajor == Major::kK ? j : 0);
      tile[layout::fragment_offset<kMajor, kRole, kTile>(e, d)] =
          __uint_as_float(round_to_tf32(__float_as_uint(values[j])));
    }
  }
}

template <Major kMajor>
__device__ uint4 load_fragment(const float* tile, int k_block, int block, int lane) {
  const int offset = (k_block * (kTile / 16) + block) * 128 +
                     (lane ^ layout::fragment_key<kMajor>(block, lane)) * 4;
  return *reinterpret_cast<const uint4*>(tile + offset);
}

template <Major kA, Major kB>
__global__ void __launch_bounds__(kBlockThreads, 2)
    mma_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  __shared__ __align__(16) float a_tile[kTile * kDepth];
  __shared__ __align__(16) float b_tile[kTile * kDepth];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / (kTile / kWarpN) * kWarpM;
  const int column = warp % (kTile / kWarpN) * kWarpN;
  const int m0 = static_cast<int>(blockIdx.y) * kTile;
  const int n0 = static_cast<int>(blockIdx.x) * kTile;

  TileRegisters<kTile, kDepth, kBlockThreads, kA> a_share;
  TileRegisters<kTile, kDepth, kBlockThreads, kB> b_share;
  float sum[kFragmentsM][2 * kFragmentsN][4] = {};
  for (int k0 = 0; k0 < a.depth; k0 += kDepth) {
    a_share.load(a, m0, k0);
    b_share.load(b, n0, k0);
    store_fragments<Role::kA>(a_tile, a_share);
    store_fragments<Role::kB>(b_tile, b_share);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth / 8; ++k) {
      uint4 a_fragment[kFragmentsM];
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
        a_fragment[i] = load_fragment<kA>(a_tile, k, row / 16 + i, lane);
      }
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        const uint4 pair = load_fragment<kB>(b_tile, k, column / 16 + j, lane);
#pragma unroll
        for (int i = 0; i < kFragmentsM; ++i) {
          const uint32_t a_registers[4] = {a_fragment[i].x, a_fragment[i].y, a_fragment[i].z,
                                           a_fragment[i].w};
          mma_tf32(sum[i][2 * j], a_registers, make_uint2(pair.x, pair.y));
          mma_tf32(sum[i][2 * j + 1], a_registers, make_uint2(pair.z, pair.w));
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * kFragmentsN; ++j) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const layout::Coordinate at = layout::mma_c(lane, r);
        c.store(m0 + row + i * 16 + at.row, n0 + column + j * 8 + at.column, sum[i][j][r]);
      }
    }
  }
}

struct Mma {
  static constexpr int kTileM = kTile;
  static constexpr int kTileN = kTile;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &mma_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_mma() {
  return {10,
          "mma.sync",
          "raw TF32 mma with fragment-ordered, swizzled tiles",
          Precision::kTf32,
          &launch_rung<Mma>,
          &rung_resources<Mma>};
}

}  // namespace lockstep
