#pragma once

#include "kernels/cuda/gemm/product.cuh"
#include "kernels/cuda/gemm/tensor_map.cuh"
#include "kernels/cuda/gemm/wgmma.cuh"
#include "kernels/cuda/gemm/wgmma_rounded.cuh"
#include "kernels/cuda/gemm/wgmma_split.cuh"
#include "kernels/layout/tile_shape.h"

namespace lockstep::cuda {

template <class Products>
WgmmaOperands wgmma_operands(const GemmLaunch& launch) {
  using Shape = typename Products::Shape;
  constexpr TensorElements kElements =
      Shape::kSplit ? TensorElements::kAsTheyAre : TensorElements::kRoundedToTf32;
  const Gemm<CudaDevice>& problem = launch.problem;
  const float* const a = problem.a.data();
  return {Products::kA == Major::kK
              ? tensor_map({a, problem.m, problem.k, launch.a_pitch}, Shape::kBlockM, kElements)
              : column_group_map({a, problem.k, problem.m, launch.a_pitch}, Shape::kBlockM),
          tensor_map({problem.b.data(), problem.n, problem.k, launch.b_pitch}, Shape::kBlockN,
                     kElements),
          static_cast<int>(problem.m), static_cast<int>(problem.n), static_cast<int>(problem.k)};
}

template <class Products, class Store>
void launch_wgmma_kernel(CudaStream& stream, const GemmLaunch& launch, const Store& store) {
  using Shape = typename Products::Shape;
  const Gemm<CudaDevice>& problem = launch.problem;
  auto* kernel = &gemm_wgmma_kernel<Products, Store>;
  allow_shared(kernel, Shape::kSharedBytes);
  const int64_t tiles = ((problem.m + Shape::kBlockM - 1) / Shape::kBlockM) *
                        ((problem.n + Shape::kBlockN - 1) / Shape::kBlockN);
  const dim3 grid(static_cast<unsigned>(tiles), 1, static_cast<unsigned>(launch.plan.slices));
  kernel<<<grid, Products::kThreads, Shape::kSharedBytes, stream.handle()>>>(
      wgmma_operands<Products>(launch), store);
  check_cuda(cudaGetLastError(), "launching a matrix product");
}

/// Products is RoundedProducts or SplitProducts, kSets the features that can be fused.
template <class Products, class... Sets>
void launch_wgmma(CudaStream& stream, const GemmLaunch& launch, Sets... sets) {
  const auto launch_with = [&](const auto& store) {
    launch_wgmma_kernel<Products>(stream, launch, store);
  };
  if (launch.features == kPlain) {
    launch_with(output_of(launch));
  } else {
    (with_fused_output(launch, sets, launch_with) || ...);
  }
}

/// The features that any of the transposes has fused: copies make every product one of K-major
/// operands.
template <class Products>
void launch_k_major_wgmma(CudaStream& stream, const GemmLaunch& launch) {
  launch_wgmma<Products>(stream, launch, FusedFeatures<Major::kK, Major::kK>::Sets{},
                         FusedFeatures<Major::kK, Major::kMN>::Sets{},
                         FusedFeatures<Major::kMN, Major::kMN>::Sets{});
}

template <class Shape>
void launch_rounded(CudaStream& stream, const GemmLaunch& launch) {
  launch_k_major_wgmma<RoundedProducts<Shape>>(stream, launch);
}

template <class Shape>
void launch_split(CudaStream& stream, const GemmLaunch& launch) {
  if (launch.problem.trans_a == Transpose::kNo) {
    launch_k_major_wgmma<SplitProducts<Shape, Major::kK>>(stream, launch);
  } else {
    launch_wgmma<SplitProducts<Shape, Major::kMN>>(stream, launch,
                                                   FusedFeatures<Major::kMN, Major::kMN>::Sets{});
  }
}

}  // namespace lockstep::cuda
