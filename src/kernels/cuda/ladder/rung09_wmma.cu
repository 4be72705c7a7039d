// Rung 9, WMMA: the same staging, with the products on the tensor cores through the nvcuda::wmma
// interface, in TF32.
//
// Eight warps of 32 x 64, each 2 x 4 fragments of 16 x 16. The interface hides which lane holds
// which element, so operands are fetched from shared memory by its own loads and nothing can be
// fused into the result's registers. Two resident blocks are demanded of the compiler: without the
// demand it may spend a few more registers to save a handful of spilled bytes and halve the
// occupancy.

#include <mma.h>

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"
#include "kernels/cuda/ladder/tile_load.cuh"

namespace lockstep {
namespace {

using namespace cuda;
namespace wmma = nvcuda::wmma;

constexpr int kTile = 128;
constexpr int kDepth = 16;
constexpr int kBlockThreads = 256;
constexpr int kPitch = kTile + 8;
constexpr int kFragmentsM = 2;
constexpr int kFragmentsN = 4;
constexpr int kResultPitch = 20;

using AFragment = wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::col_major>;
using BFragment = wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
using Accumulator = wmma::fragment<wmma::accumulator, 16, 16, 8, float>;

template <class Fragment>
__device__ void round_to_tf32(Fragment& fragment) {
#pragma unroll
  for (int i = 0; i < fragment.num_elements; ++i) {
    fragment.x[i] = wmma::__float_to_tf32(fragment.x[i]);
  }
}

template <Major kA, Major kB>
__global__ void __launch_bounds__(kBlockThreads, 2)
    wmma_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  __shared__ __align__(32) float a_tile[kDepth][kPitch];
  __shared__ __align__(32) float b_tile[kDepth][kPitch];
  __shared__ __align__(32) float result[kBlockThreads / 32][16][kResultPitch];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / 2 * 32;
  const int column = warp % 2 * 64;
  const int m0 = static_cast<int>(blockIdx.y) * kTile;
  const int n0 = static_cast<int>(blockIdx.x) * kTile;

  TileRegisters<kTile, kDepth, kBlockThreads, kA> a_share;
  TileRegisters<kTile, kDepth, kBlockThreads, kB> b_share;
  Accumulator sum[kFragmentsM][kFragmentsN];
#pragma unroll
  for (int i = 0; i < kFragmentsM * kFragmentsN; ++i) {
    wmma::fill_fragment(sum[i / kFragmentsN][i % kFragmentsN], 0.0F);
  }
  for (int k0 = 0; k0 < a.depth; k0 += kDepth) {
    a_share.load(a, m0, k0);
    b_share.load(b, n0, k0);
    a_share.store(a_tile);
    b_share.store(b_tile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; k += 8) {
      AFragment a_fragment[kFragmentsM];
      BFragment b_fragment[kFragmentsN];
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
        wmma::load_matrix_sync(a_fragment[i], &a_tile[k][row + i * 16], kPitch);
        round_to_tf32(a_fragment[i]);
      }
#pragma unroll
      for (int j = 0; j < kFragmentsN; ++j) {
        wmma::load_matrix_sync(b_fragment[j], &b_tile[k][column + j * 16], kPitch);
        round_to_tf32(b_fragment[j]);
      }
#pragma unroll
      for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
        for (int j = 0; j < kFragmentsN; ++j) {
          wmma::mma_sync(sum[i][j], a_fragment[i], b_fragment[j], sum[i][j]);
        }
      }
    }
    __syncthreads();
  }

  // The layout of an accumulator is not ours to know: each goes through shared memory to be stored
  // with bounds.
#pragma unroll
  for (int i = 0; i < kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < kFragmentsN; ++j) {
      wmma::store_matrix_sync(&result[warp][0][0], sum[i][j], kResultPitch, wmma::mem_row_major);
      __syncwarp();
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const int r = part * 8 + lane / 4;
        const int q = lane % 4 * 4;
        c.store4(m0 + row + i * 16 + r, n0 + column + j * 16 + q,
                 *reinterpret_cast<const float4*>(&result[warp][r][q]));
      }
      __syncwarp();
    }
  }
}

struct Wmma {
  static constexpr int kTileM = kTile;
  static constexpr int kTileN = kTile;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &wmma_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_wmma() {
  return {9,
          "wmma",
          "tensor cores in TF32 through wmma fragments",
          Precision::kTf32,
          &launch_rung<Wmma>,
          &rung_resources<Wmma>};
}

}  // namespace lockstep
