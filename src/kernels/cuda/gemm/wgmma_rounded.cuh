#pragma once

// wgmma of factors rounded to TF32: two warpgroups only wait for tiles and for products.

#include "kernels/cuda/gemm/wgmma_operands.cuh"
#include "kernels/cuda/gemm/wgmma_rows.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"

namespace lockstep::cuda {

template <class Shape_>
struct RoundedProducts {
  using Shape = Shape_;
  using Pipeline = WgmmaPipeline<Shape>;
  static constexpr Major kA = Major::kK;
  static constexpr int kThreads = layout::kMultiplyingWarps * 32 + 32;

  /// By the warp that does not multiply.
  static __device__ void supply(const Pipeline& pipeline, const WgmmaOperands& operands,
                                const WgmmaWork& work) {
    if (threadIdx.x % 32 == 0) {
      fill_tiles<Major::kK>(pipeline, operands, work);
    }
  }

  /// One warpgroup's products of `tiles` tiles, added to `sum`.
  static __device__ void multiply(const Pipeline& pipeline, int group, int tiles,
                                  float (&sum)[Shape::kBlockN / 2], RowSums& /*sums*/) {
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
      if (tile > 0) {
        pipeline.release(last_stage);
      }
      last_stage = at.stage;
    }
    warpgroup_wait<0>();
    warpgroup_fence_sums(sum);
  }
};

}  // namespace lockstep::cuda
