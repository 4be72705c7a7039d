// Rung 4, one-dimensional register tile: each thread computes eight elements of one column.
//
// One value of B from shared memory now serves eight multiply-adds from a register: nine loads for
// eight of them, where rung 3 needed sixteen. The block's tile grows to 64 x 64, 16 FLOP per byte
// of global traffic.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"
#include "kernels/cuda/ladder/tile_load.cuh"

namespace lockstep {
namespace {

using namespace cuda;

constexpr int kTile = 64;
constexpr int kDepth = 8;
constexpr int kRows = 8;
constexpr int kBlockThreads = kTile * kTile / kRows;
constexpr int kPitch = kTile + 4;

template <Major kA, Major kB>
__global__ void __launch_bounds__(kBlockThreads)
    register_column_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  __shared__ float a_tile[kDepth][kPitch];
  __shared__ float b_tile[kDepth][kPitch];
  const int row = static_cast<int>(threadIdx.x) / kTile * kRows;
  const int column = static_cast<int>(threadIdx.x) % kTile;
  const int m0 = static_cast<int>(blockIdx.y) * kTile;
  const int n0 = static_cast<int>(blockIdx.x) * kTile;

  float sum[kRows] = {};
  for (int k0 = 0; k0 < a.depth; k0 += kDepth) {
    load_tile<kTile, kDepth, kBlockThreads>(a_tile, a, m0, k0);
    load_tile<kTile, kDepth, kBlockThreads>(b_tile, b, n0, k0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float value = b_tile[k][column];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        sum[i] += a_tile[k][row + i] * value;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    c.store(m0 + row + i, n0 + column, sum[i]);
  }
}

struct RegisterColumn {
  static constexpr int kTileM = kTile;
  static constexpr int kTileN = kTile;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &register_column_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_register_column() {
  return {4,
          "register column",
          "eight elements of a column per thread",
          Precision::kFp32,
          &launch_rung<RegisterColumn>,
          &rung_resources<RegisterColumn>};
}

}  // namespace lockstep
