#pragma once

// wgmma of factors rounded to TF32: warpgroups only wait for tiles and for products.

#include "kernels/cuda/gemm/wgmma_operands.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/wgmma/rows.cuh"

namespace lockstep::cuda {

/// A warpgroup's products of the next `tiles` tiles, from `at` on, added to `sum`: of 64 rows of
/// a's tiles from row `first_row` on, and of all of b's. started() is called when all have been
/// started, before they are waited for.
template <class Shape, class Started>
__device__ void multiply_rounded(const StagePipeline<Shape>& pipeline,
                                 typename StagePipeline<Shape>::Cursor& at, int first_row,
                                 int tiles, float (&sum)[Shape::kBlockN / 2], Started started) {
  int last_stage = 0;
  warpgroup_fence_sums(sum);
  for (int tile = 0; tile < tiles; ++tile, at.advance()) {
    const uint64_t a_operand =
        warpgroup_operand(pipeline.a_tile(at.stage) + first_row * layout::kWarpgroupDepth * 4);
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
    if (tile > 0) {
      pipeline.release(last_stage);
    }
    last_stage = at.stage;
  }
  started();
  warpgroup_wait<0>();
  pipeline.release(last_stage);
  warpgroup_fence_sums(sum);
}

template <class Shape_>
struct RoundedProducts {
  using Shape = Shape_;
  using Pipeline = StagePipeline<Shape>;
  static constexpr Major kA = Major::kK;
  static constexpr int kThreads = layout::kMultiplyingWarps * 32 + 32;

  /// By the warp that does not multiply.
  static __device__ void supply(const Pipeline& pipeline, const WgmmaOperands& operands,
                                const WgmmaWork& work) {
    if (threadIdx.x % 32 == 0) {
      typename Pipeline::Cursor at;
      fill_tiles<Major::kK>(pipeline, at, operands, work);
    }
  }

  /// One warpgroup's products of `tiles` tiles, added to `sum`.
  static __device__ void multiply(const Pipeline& pipeline, int group, int tiles,
                                  float (&sum)[Shape::kBlockN / 2], RowSums& /*sums*/) {
    typename Pipeline::Cursor at;
    multiply_rounded(pipeline, at, group * 64, tiles, sum, [] {});
  }
};

}  // namespace lockstep::cuda
