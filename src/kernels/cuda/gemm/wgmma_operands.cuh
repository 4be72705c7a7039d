#pragma once

// What the wgmma kernels read, and the thread that has the tensor memory accelerator bring it.

#include <cuda.h>

#include "kernels/cuda/tma/pipeline.cuh"
#include "kernels/layout/swizzle.h"

namespace lockstep::cuda {

using layout::Major;

/// A product's operands as the kernel reads them: rounded to TF32 by their maps, but as they are
/// where factors are split, and an MN-major a, which is rounded in registers.
struct WgmmaOperands {
  CUtensorMap a;  ///< (m, k), boxes of kBlockM x 32; or (k, m), of 32 x a panel's rows
  CUtensorMap b;  ///< (n, k), boxes of kBlockN x 32
  int m;
  int n;
  int k;
  float* a_sums;  ///< (slices of k, a_sums_pitch): sums of a's rows, of an MN-major a; or null
  int64_t a_sums_pitch;
};

/// The part of a product that a block computes.
struct WgmmaWork {
  int m0;
  int n0;
  int d0;     ///< of k
  int tiles;  ///< along k
};

/// Tiles of c.
template <class Shape>
__host__ __device__ int tiles_of(const WgmmaOperands& operands) {
  return (operands.m + Shape::kBlockM - 1) / Shape::kBlockM *
         ((operands.n + Shape::kBlockN - 1) / Shape::kBlockN);
}

/// The tile of c of this number, and the blockIdx.z-th slice of k.
template <class Shape>
__device__ WgmmaWork work_of(const WgmmaOperands& operands, int tile, int slice_depth) {
  const auto [tile_m, tile_n] =
      layout::tile_of_block(tile, (operands.m + Shape::kBlockM - 1) / Shape::kBlockM,
                            (operands.n + Shape::kBlockN - 1) / Shape::kBlockN);
  const int d0 = static_cast<int>(blockIdx.z) * slice_depth;
  return {
      tile_m * Shape::kBlockM, tile_n * Shape::kBlockN, d0,
      (min(operands.k - d0, slice_depth) + layout::kWarpgroupDepth - 1) / layout::kWarpgroupDepth};
}

/// Fills the ring from `at` on with `work`'s tiles, one after the other. By one thread.
template <Major kA, class Shape>
__device__ void fill_tiles(const StagePipeline<Shape>& pipeline,
                           typename StagePipeline<Shape>::Cursor& at, const WgmmaOperands& operands,
                           const WgmmaWork& work) {
  using Pipeline = StagePipeline<Shape>;
  for (int tile = 0; tile < work.tiles; ++tile, at.advance()) {
    const int depth = work.d0 + tile * layout::kWarpgroupDepth;
    pipeline.wait_empty(at);
    arrive_expecting(pipeline.full(at.stage), Pipeline::kABytes + Pipeline::kBBytes);
    if constexpr (kA == Major::kK) {
      copy_box(pipeline.a_tile(at.stage), &operands.a, depth, work.m0, pipeline.full(at.stage));
    } else {
#pragma unroll
      for (int row = 0; row < Shape::kBlockM; row += layout::kPanelRows) {
        copy_box(pipeline.a_tile(at.stage) + row * layout::kWarpgroupDepth * 4, &operands.a,
                 work.m0 + row, depth, pipeline.full(at.stage));
      }
    }
    copy_box(pipeline.b_tile(at.stage), &operands.b, depth, work.n0, pipeline.full(at.stage));
  }
}

}  // namespace lockstep::cuda
