// Rung 6, vectorised: every access moves 16 bytes.
//
// Global loads, shared loads and stores of C become float4: a quarter of the instructions for the
// same bytes. A is transposed on its way into shared memory (it always was stored [k][m]), which is
// what makes its loads contiguous.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/outer_product.cuh"
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
    vectorized_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  __shared__ __align__(16) float a_tile[kDepth][kPitch];
  __shared__ __align__(16) float b_tile[kDepth][kPitch];
  const int row = static_cast<int>(threadIdx.x) / (kTile / kSide) * kSide;
  const int column = static_cast<int>(threadIdx.x) % (kTile / kSide) * kSide;
  const int m0 = static_cast<int>(blockIdx.y) * kTile;
  const int n0 = static_cast<int>(blockIdx.x) * kTile;

  TileRegisters<kTile, kDepth, kBlockThreads, kA> a_share;
  TileRegisters<kTile, kDepth, kBlockThreads, kB> b_share;
  float sum[kSide][kSide] = {};
  for (int k0 = 0; k0 < a.depth; k0 += kDepth) {
    a_share.load(a, m0, k0);
    b_share.load(b, n0, k0);
    a_share.store(a_tile);
    b_share.store(b_tile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float a_values[kSide];
      float b_values[kSide];
      load_shared(a_values, &a_tile[k][row]);
      load_shared(b_values, &b_tile[k][column]);
      add_outer_product(sum, a_values, b_values);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kSide; ++i) {
#pragma unroll
    for (int j = 0; j < kSide; j += 4) {
      c.store4(m0 + row + i, n0 + column + j, *reinterpret_cast<float4*>(&sum[i][j]));
    }
  }
}

struct Vectorized {
  static constexpr int kTileM = kTile;
  static constexpr int kTileN = kTile;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &vectorized_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_vectorized() {
  return {6,
          "vectorized",
          "16-byte accesses everywhere",
          Precision::kFp32,
          &launch_rung<Vectorized>,
          &rung_resources<Vectorized>};
}

}  // namespace lockstep
