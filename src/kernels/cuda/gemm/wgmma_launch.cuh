#pragma once

#include "kernels/cuda/gemm/product.cuh"
#include "kernels/cuda/gemm/tensor_map.cuh"
#include "kernels/cuda/gemm/wgmma.cuh"
#include "kernels/layout/tile_shape.h"

namespace lockstep::cuda {

template <class Shape, class Store>
void launch_wgmma_kernel(CudaStream& stream, const GemmLaunch& launch, const Store& store) {
  const Gemm<CudaDevice>& problem = launch.problem;
  auto* kernel = &gemm_wgmma_kernel<Shape, Store>;
  allow_shared(kernel, Shape::kSharedBytes);
  const int64_t tiles = ((problem.m + Shape::kBlockM - 1) / Shape::kBlockM) *
                        ((problem.n + Shape::kBlockN - 1) / Shape::kBlockN);
  const dim3 grid(static_cast<unsigned>(tiles), 1, static_cast<unsigned>(launch.plan.slices));
  const WgmmaOperands operands = {
      tf32_tensor_map({problem.a.data(), problem.m, problem.k, launch.a_pitch}, Shape::kBlockM),
      tf32_tensor_map({problem.b.data(), problem.n, problem.k, launch.b_pitch}, Shape::kBlockN),
      static_cast<int>(problem.m), static_cast<int>(problem.n), static_cast<int>(problem.k)};
  kernel<<<grid, kWgmmaThreads, Shape::kSharedBytes, stream.handle()>>>(operands, store);
  check_cuda(cudaGetLastError(), "launching a matrix product");
}

/// The features that any of the transposes has fused: these kernels see K-major operands only.
template <class Shape>
void launch_wgmma(CudaStream& stream, const GemmLaunch& launch) {
  const auto launch_with = [&](const auto& store) {
    launch_wgmma_kernel<Shape>(stream, launch, store);
  };
  if (launch.features == kPlain) {
    launch_with(output_of(launch));
    return;
  }
  with_fused_output(launch, FusedFeatures<Major::kK, Major::kK>::Sets{}, launch_with) ||
      with_fused_output(launch, FusedFeatures<Major::kK, Major::kMN>::Sets{}, launch_with) ||
      with_fused_output(launch, FusedFeatures<Major::kMN, Major::kMN>::Sets{}, launch_with);
}

}  // namespace lockstep::cuda
