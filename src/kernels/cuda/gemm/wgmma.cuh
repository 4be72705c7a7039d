#pragma once

// Hopper's product (wgmma): the tensor cores read b, and a unless it passes through registers, from
// shared memory, where it must lie K-major. One thread has the tensor memory accelerator bring
// them; two warpgroups multiply. What they make of two tiles is their own matter: Products is
// RoundedProducts or LyingProducts (TF32) or SplitProducts (single precision).

#include "kernels/cuda/gemm/wgmma_operands.cuh"
#include "kernels/cuda/gemm/wgmma_rows.cuh"

namespace lockstep::cuda {

/// Gives a warp's 16 x kN sums to `store` in runs of four neighbouring columns, from column0 on;
/// `row_of` maps the sixteen to rows of c. They pass through `memory`, this warp's own, so that a
/// warp touches whole lines of global memory: as the products leave them, lanes hold pieces of 8
/// bytes.
template <int kN, class RowOf, class Store>
__device__ void store_sums(const float (&sum)[kN / 2], float* memory, const RowOf& row_of,
                           int column0, const Store& store) {
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
      fetched[j] = store.fetch(row_of(chunk / kRowChunks), column0 + chunk % kRowChunks * 4);
    }
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      const int chunk = (i + j) * 32 + lane;
      const int row = chunk / kRowChunks;
      const int column = chunk % kRowChunks * 4;
      store.store4(row_of(row), column0 + column,
                   *reinterpret_cast<const float4*>(memory + row * kPitch + column), fetched[j]);
    }
  }
}

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

/// The two warpgroups that multiply wait for each other.
__device__ inline void meet_warpgroups() {
  asm volatile("bar.sync 1, 256;" ::: "memory");
}

/// Block x computes a tile of the z-th slice of k, and gives it to `store` (see Output).
template <class Products, class Store>
__global__ void __launch_bounds__(Products::kThreads, Products::Shape::kResident)
    gemm_wgmma_kernel(const __grid_constant__ WgmmaOperands operands, Store store) {
  using Shape = typename Products::Shape;
  using Pipeline = WgmmaPipeline<Shape>;
  extern __shared__ __align__(1024) float shared[];
  __shared__ __align__(8) uint64_t barriers[Pipeline::kBarriers];
  const Pipeline pipeline = {shared_address(shared),
                             static_cast<uint32_t>(__cvta_generic_to_shared(barriers))};
  const auto [tile_m, tile_n] = layout::tile_of_block(
      static_cast<int>(blockIdx.x), (operands.m + Shape::kBlockM - 1) / Shape::kBlockM,
      (operands.n + Shape::kBlockN - 1) / Shape::kBlockN);
  const int d0 = static_cast<int>(blockIdx.z) * store.slice_depth;
  const WgmmaWork work = {tile_m * Shape::kBlockM, tile_n * Shape::kBlockN, d0,
                          (min(operands.k - d0, store.slice_depth) + layout::kWarpgroupDepth - 1) /
                              layout::kWarpgroupDepth};
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
    Products::supply(pipeline, operands, work);
  } else {
    float sum[Shape::kBlockN / 2] = {};
    RowSums row_sums = {operands.a_sums != nullptr && tile_n == 0};
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
