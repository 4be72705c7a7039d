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

/// Gives a warp's 16 x kN sums to `store` in runs of four neighbouring columns, from (row0,
/// column0) on. They pass through `memory`, this warp's own, so that a warp touches whole lines of
/// global memory: as the products leave them, lanes hold pieces of 8 bytes.
template <int kN, class Store>
__device__ void store_sums(const float (&sum)[kN / 2], float* memory, int row0, int column0,
                           const Store& store) {
  constexpr int kPitch = layout::warp_sums_pitch(kN);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < kN / 8; ++j) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* const to = memory + (lane / 4 + half * 8) * kPitch + 8 * j + lane % 4 * 2;
      *reinterpret_cast<float2*>(to) =
          make_float2(sum[4 * j + 2 * half], sum[4 * j + 2 * half + 1]);
    }
  }
  __syncwarp();
  constexpr int kRowChunks = kN / 4;
  constexpr int kTogether = 4;  // whose operands are fetched before any is stored
#pragma unroll 1
  for (int i = 0; i < 16 * kRowChunks / 32; i += kTogether) {
    typename Store::Fetched fetched[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int chunk = (i + j) * 32 + lane;
      fetched[j] = store.fetch(row0 + chunk / kRowChunks, column0 + chunk % kRowChunks * 4);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int chunk = (i + j) * 32 + lane;
      const int row = chunk / kRowChunks;
      const int column = chunk % kRowChunks * 4;
      store.store4(row0 + row, column0 + column,
                   *reinterpret_cast<const float4*>(memory + row * kPitch + column), fetched[j]);
    }
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

/// The two warpgroups that multiply wait for each other.
__device__ inline void meet_warpgroups() {
  asm volatile("bar.sync 1, 256;" ::: "memory");
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
    meet_warpgroups();  // the other one may still have been reading the tiles
    const int warp = static_cast<int>(threadIdx.x) / 32;
    store_sums<Shape::kBlockN>(sum, shared + warp * layout::warp_sums_floats(Shape::kBlockN),
                               m0 + warp * 16, n0, store);
  }
}

}  // namespace lockstep::cuda
