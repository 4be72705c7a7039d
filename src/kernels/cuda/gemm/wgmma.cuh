#pragma once

// Hopper's product (TF32, wgmma): the tensor cores read both operands from shared memory, where
// they must lie K-major. One thread has the tensor memory accelerator bring tiles, rounded to TF32
// on their way; two warpgroups only wait for tiles and for products.

#include "kernels/cuda/gemm/wgmma_pipeline.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/layout/warpgroup.h"

namespace lockstep::cuda {

inline constexpr int kWgmmaThreads = 2 * 128 + 32;

/// A product's operands as the kernel reads them.
struct WgmmaOperands {
  CUtensorMap a;  ///< (m, k), boxes of kBlockM x 32
  CUtensorMap b;  ///< (n, k), boxes of kBlockN x 32
  int m;
  int n;
  int k;
};

/// Fills `tiles` tiles along k, from (m0, n0, d0) on. By one thread.
template <class Shape>
__device__ void fill_tiles(const WgmmaPipeline<Shape>& pipeline, const WgmmaOperands& operands,
                           int m0, int n0, int d0, int tiles) {
  using Pipeline = WgmmaPipeline<Shape>;
  typename Pipeline::Cursor at;
  for (int tile = 0; tile < tiles; ++tile, at.advance()) {
    const int depth = d0 + tile * layout::kWarpgroupDepth;
    pipeline.wait_empty(at);
    arrive_expecting(pipeline.full(at.stage), Pipeline::kStageBytes);
    copy_box(pipeline.a_tile(at.stage), &operands.a, depth, m0, pipeline.full(at.stage));
    copy_box(pipeline.b_tile(at.stage), &operands.b, depth, n0, pipeline.full(at.stage));
  }
}

/// Gives a warpgroup's 64 x kN sums to `store` in runs of four neighbouring columns, from (row0,
/// column0) on.
template <int kN, class Store>
__device__ void store_sums(const float (&sum)[kN / 2], int row0, int column0, const Store& store) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const bool odd = lane % 2 != 0;
  // A lane has two columns of two rows that lie eight apart. Neighbours trade halves: then each
  // has four columns of one row.
  const int row = row0 + warp * 16 + lane / 4 + (odd ? 8 : 0);
  const int column = column0 + lane % 4 / 2 * 4;
#pragma unroll
  for (int j = 0; j < kN / 8; ++j) {
    const float* const mine = sum + 4 * j;
    const float x = __shfl_xor_sync(0xFFFFFFFFU, odd ? mine[0] : mine[2], 1);
    const float y = __shfl_xor_sync(0xFFFFFFFFU, odd ? mine[1] : mine[3], 1);
    store.store4(row, column + 8 * j,
                 odd ? make_float4(x, y, mine[2], mine[3]) : make_float4(mine[0], mine[1], x, y));
  }
}

/// One warpgroup's products of `tiles` tiles.
template <class Shape>
__device__ void multiply_tiles(const WgmmaPipeline<Shape>& pipeline, int group, int tiles,
                               float (&sum)[Shape::kBlockN / 2]) {
  using Pipeline = WgmmaPipeline<Shape>;
  typename Pipeline::Cursor at;
  int last_stage = 0;
  warpgroup_fence_sums(sum);
  for (int tile = 0; tile < tiles; ++tile, at.advance()) {
    const uint64_t a_operand =
        warpgroup_operand(pipeline.a_tile(at.stage) + group * 64 * layout::kWarpgroupDepth * 4);
    const uint64_t b_operand = warpgroup_operand(pipeline.b_tile(at.stage));
    pipeline.wait_full(at);
    warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < layout::kWarpgroupDepth / 8; ++step) {
      warpgroup_mma_tf32<Shape::kBlockN>(sum, a_operand + step * kWarpgroupStep,
                                         b_operand + step * kWarpgroupStep);
    }
    warpgroup_commit();
    // When only these products are unfinished, the tile before is no longer read.
    warpgroup_wait<1>();
    if (tile > 0 && threadIdx.x % 128 == 0) {
      arrive(pipeline.empty(last_stage));
    }
    last_stage = at.stage;
  }
  warpgroup_wait<0>();
  warpgroup_fence_sums(sum);
}

/// Block x computes a tile of the z-th slice of k, and gives it to `store` (see Output).
template <class Shape, class Store>
__global__ void __launch_bounds__(kWgmmaThreads, Shape::kResident)
    gemm_wgmma_kernel(const __grid_constant__ WgmmaOperands operands, Store store) {
  extern __shared__ __align__(1024) float shared[];
  __shared__ __align__(8) uint64_t barriers[2 * Shape::kStages];
  const WgmmaPipeline<Shape> pipeline = {shared_address(shared),
                                         static_cast<uint32_t>(__cvta_generic_to_shared(barriers))};
  const auto [tile_m, tile_n] = layout::tile_of_block(
      static_cast<int>(blockIdx.x), (operands.m + Shape::kBlockM - 1) / Shape::kBlockM,
      (operands.n + Shape::kBlockN - 1) / Shape::kBlockN);
  const int m0 = tile_m * Shape::kBlockM;
  const int n0 = tile_n * Shape::kBlockN;
  const int d0 = static_cast<int>(blockIdx.z) * store.slice_depth;
  const int tiles = (min(operands.k - d0, store.slice_depth) + layout::kWarpgroupDepth - 1) /
                    layout::kWarpgroupDepth;
  if (threadIdx.x == 0) {
    prefetch_map(&operands.a);
    prefetch_map(&operands.b);
    pipeline.init();
  }
  __syncthreads();

  // From one lane, so that the compiler knows it to be the same for all: descriptors then need no
  // moves into uniform registers between products.
  const int group = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 128, 0);
  if (group == 2) {
    if (threadIdx.x % 32 == 0) {
      fill_tiles<Shape>(pipeline, operands, m0, n0, d0, tiles);
    }
  } else {
    float sum[Shape::kBlockN / 2] = {};
    multiply_tiles<Shape>(pipeline, group, tiles, sum);
    store_sums<Shape::kBlockN>(sum, m0 + group * 64, n0, store);
  }
}

}  // namespace lockstep::cuda
