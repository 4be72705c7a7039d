#pragma once

// wgmma by blocks that stay: each multiprocessor has one, which computes tile after tile of c. Its
// two warpgroups take them by turns, each a tile of its own, so that one's sums leave and its
// features are computed while the other multiplies. One ring of tiles of a and b serves both, in
// the order of the tiles of c.

#include "kernels/cuda/gemm/wgmma_operands.cuh"
#include "kernels/cuda/gemm/wgmma_rounded.cuh"
#include "kernels/cuda/gemm/wgmma_sums.cuh"
#include "kernels/cuda/wgmma/warpgroups.cuh"

namespace lockstep::cuda {

inline constexpr int kPingPongThreads = layout::kMultiplyingWarps * 32 + 32;

/// Block x computes every gridDim.x-th tile of the z-th slice of k, from the x-th on, and gives
/// them to `store` (see Output).
template <class Shape, class Store>
__global__ void __launch_bounds__(kPingPongThreads, Shape::kResident)
    gemm_pingpong_kernel(const __grid_constant__ WgmmaOperands operands, Store store) {
  using Pipeline = StagePipeline<Shape>;
  extern __shared__ __align__(1024) float shared[];
  __shared__ __align__(8) uint64_t barriers[Pipeline::kBarriers];
  const Pipeline pipeline = {shared_address(shared),
                             static_cast<uint32_t>(__cvta_generic_to_shared(barriers))};
  if (threadIdx.x == 0) {
    prefetch_map(&operands.a);
    prefetch_map(&operands.b);
    pipeline.init();
  }
  __syncthreads();

  const int tiles = tiles_of<Shape>(operands);
  const int step = static_cast<int>(gridDim.x);
  const int first = static_cast<int>(blockIdx.x);
  typename Pipeline::Cursor at;
  const int group = warpgroup_index();
  if (group == 2) {
    if (threadIdx.x % 32 == 0) {
      for (int tile = first; tile < tiles; tile += step) {
        fill_tiles<Major::kK>(pipeline, at, operands,
                              work_of<Shape>(operands, tile, store.slice_depth));
      }
    }
    return;
  }
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* const memory = shared + Shape::kStages * Shape::kStageFloats +
                        warp * layout::warp_sums_floats(Shape::kSumColumns);
  if (group == 1) {
    pass_turn(group);
  }
  for (int tile = first + group * step; tile < tiles; tile += 2 * step) {
    const WgmmaWork work = work_of<Shape>(operands, tile, store.slice_depth);
    if (tile != first) {
      at.skip(work.tiles);  // the other warpgroup's
    }
    float sum[Shape::kBlockN / 2] = {};
    // By turns too: a barrier of the ring tells a round only from the next one, and this
    // warpgroup's tiles may lie several ahead.
    take_turn(group);
    multiply_rounded(pipeline, at, 0, work.tiles, sum, [&] {
      if (tile + step < tiles) {
        pass_turn(group);
      }
    });
    store_sums<Shape::kSumColumns>(
        sum, memory, [&](int row) { return work.m0 + warp % 4 * 16 + row; }, work.n0, store);
    __syncwarp();  // before the next tile's sums overwrite these
  }
}

}  // namespace lockstep::cuda
