#pragma once

// Hopper's product (wgmma): the tensor cores read b, and a unless it passes through registers, from
// shared memory, where it must lie K-major. One thread has the tensor memory accelerator bring
// them; two warpgroups multiply. What they make of two tiles is their own matter: Products is
// RoundedProducts or MnMajorProducts (TF32) or SplitProducts (single precision).

#include "kernels/cuda/gemm/wgmma_operands.cuh"
#include "kernels/cuda/gemm/wgmma_sums.cuh"
#include "kernels/cuda/wgmma/rows.cuh"
#include "kernels/cuda/wgmma/warpgroups.cuh"

namespace lockstep::cuda {

/// Stores a warp's sums of rows of a, of the block's slice of k.
template <class RowOf>
__device__ void store_row_sums(RowSums sums, const RowOf& row_of, const WgmmaOperands& operands) {
  sums.combine();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float* const to = operands.a_sums + blockIdx.z * operands.a_sums_pitch;
  const int row = row_of(lane / 4 + lane % 2 * 8);
  if (lane % 4 < 2 && row < operands.m) {
    to[row] = lane % 2 == 0 ? sums.upper : sums.lower;
  }
}

/// Block x computes a tile of the z-th slice of k, and gives it to `store` (see Output).
template <class Products, class Store>
__global__ void __launch_bounds__(Products::kThreads, Products::Shape::kResident)
    gemm_wgmma_kernel(const __grid_constant__ WgmmaOperands operands, Store store) {
  using Shape = typename Products::Shape;
  using Pipeline = StagePipeline<Shape>;
  extern __shared__ __align__(1024) float shared[];
  __shared__ __align__(8) uint64_t barriers[Pipeline::kBarriers];
  const Pipeline pipeline = {shared_address(shared),
                             static_cast<uint32_t>(__cvta_generic_to_shared(barriers))};
  const WgmmaWork work = work_of<Shape>(operands, static_cast<int>(blockIdx.x), store.slice_depth);
  if (threadIdx.x == 0) {
    prefetch_map(&operands.a);
    prefetch_map(&operands.b);
    pipeline.init();
  }
  __syncthreads();

  const int group = warpgroup_index();
  if (group == 2) {
    Products::supply(pipeline, operands, work);
  } else {
    float sum[Shape::kBlockN / 2] = {};
    RowSums row_sums = {operands.a_sums != nullptr && work.n0 == 0};
    Products::multiply(pipeline, group, work.tiles, sum, row_sums);
    meet_warpgroups();  // the other one may still have been reading the tiles
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const auto row_of = [&](int row) {
      return work.m0 +
             (Products::kA == Major::kMN ? layout::panel_row(warp, row) : warp * 16 + row);
    };
    if (Products::kA == Major::kMN && row_sums.wanted) {
      store_row_sums(row_sums, row_of, operands);
    }
    store_sums<Shape::kBlockN>(sum, shared + warp * layout::warp_sums_floats(Shape::kBlockN),
                               row_of, work.n0, store);
  }
}

}  // namespace lockstep::cuda
