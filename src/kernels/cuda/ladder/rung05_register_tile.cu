// Rung 5, two-dimensional register tile: each thread computes 8 x 8 elements.
//
// Sixteen values from shared memory feed 64 multiply-adds: 0.25 loads each, where rung 4
// needed 1.125. The block's tile grows to 128 x 128, 32 FLOP per byte of global traffic.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"
#include "kernels/cuda/ladder/tile_load.cuh"

namespace lockstep {
namespace {

using namespace cuda;

constexpr int kTile = 128;
constexpr int kDepth = 8;
constexpr int kSide = 8;
constexpr int kBlockThreads = kTile * kTile / (kSide * kSide);
constexpr int kPitch = kTile + 4;

template <Major kA, Major kB>
__global__ void __launch_bounds__(kBlockThreads)
    register_tile_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  __shared__ float a_tile[kDepth][kPitch];
  __shared__ float b_tile[kDepth][kPitch];
  const int row = static_cast<int>(threadIdx.x) / (kTile / kSide) * kSide;
  const int column = static_cast<int>(threadIdx.x) % (kTile / kSide) * kSide;
  const int m0 = static_cast<int>(blockIdx.y) * kTile;
  const int n0 = static_cast<int>(blockIdx.x) * kTile;

  float sum[kSide][kSide] = {};
  for (int k0 = 0; k0 < a.depth; k0 += kDepth) {
    load_tile<kTile, kDepth, kBlockThreads>(a_tile, a, m0, k0);
    load_tile<kTile, kDepth, kBlockThreads>(b_tile, b, n0, k0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float a_values[kSide];
      float b_values[kSide];
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
        a_values[i] = a_tile[k][row + i];
        b_values[i] = b_tile[k][column + i];
      }
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
#pragma unroll
        for (int j = 0; j < kSide; ++j) {
          sum[i][j] += a_values[i] * b_values[j];
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      c.store(m0 + row + i, n0 + column + j, sum[i][j]);
    }
  }
}

struct RegisterTile {
  static constexpr int kTileM = kTile;
  static constexpr int kTileN = kTile;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &register_tile_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_register_tile() {
  return {5,
          "register tile",
          "8 x 8 elements per thread",
          Precision::kFp32,
          &launch_rung<RegisterTile>,
          &rung_resources<RegisterTile>};
}

}  // namespace lockstep
