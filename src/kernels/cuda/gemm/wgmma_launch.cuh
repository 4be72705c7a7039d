#pragma once

#include <algorithm>

#include "kernels/cuda/gemm/product.cuh"
#include "kernels/cuda/gemm/wgmma.cuh"
#include "kernels/cuda/gemm/wgmma_mn_major.cuh"
#include "kernels/cuda/gemm/wgmma_pingpong.cuh"
#include "kernels/cuda/gemm/wgmma_rounded.cuh"
#include "kernels/cuda/gemm/wgmma_split.cuh"
#include "kernels/cuda/tma/tensor_map.cuh"
#include "kernels/layout/tile_shape.h"

namespace lockstep::cuda {

template <class Shape, Major kA>
WgmmaOperands wgmma_operands(const GemmLaunch& launch) {
  constexpr TensorElements kElements =
      Shape::kSplit ? TensorElements::kAsTheyAre : TensorElements::kRoundedToTf32;
  const Gemm<CudaDevice>& problem = launch.problem;
  const float* const a = problem.a.data();
  return {kA == Major::kK
              ? tensor_map({a, problem.m, problem.k, launch.a_pitch}, Shape::kBlockM, kElements)
              : tensor_map({a, problem.k, problem.m, launch.a_pitch}, layout::kWarpgroupDepth,
                           TensorElements::kAsTheyAre),
          tensor_map({problem.b.data(), problem.n, problem.k, launch.b_pitch}, Shape::kBlockN,
                     kElements),
          static_cast<int>(problem.m),
          static_cast<int>(problem.n),
          static_cast<int>(problem.k),
          launch.a_sums,
          launch.a_sums_pitch};
}

/// A block for each tile and slice. Products is RoundedProducts, MnMajorProducts or SplitProducts.
template <class Products>
struct BlockPerTile {
  template <class Store>
  static void launch(CudaStream& stream, const GemmLaunch& launch, const Store& store) {
    using Shape = typename Products::Shape;
    auto* kernel = &gemm_wgmma_kernel<Products, Store>;
    allow_shared(kernel, Shape::kSharedBytes);
    const WgmmaOperands operands = wgmma_operands<Shape, Products::kA>(launch);
    const dim3 grid(static_cast<unsigned>(tiles_of<Shape>(operands)), 1,
                    static_cast<unsigned>(launch.plan.slices));
    kernel<<<grid, Products::kThreads, Shape::kSharedBytes, stream.handle()>>>(operands, store);
  }
};

/// Blocks that compute one tile of a slice after the other, no more than one on each
/// multiprocessor.
template <class Shape>
struct PersistentBlocks {
  template <class Store>
  static void launch(CudaStream& stream, const GemmLaunch& launch, const Store& store) {
    auto* kernel = &gemm_pingpong_kernel<Shape, Store>;
    allow_shared(kernel, Shape::kSharedBytes);
    const WgmmaOperands operands = wgmma_operands<Shape, Major::kK>(launch);
    const auto slices = static_cast<int>(launch.plan.slices);
    const int fitting = std::max(1, stream.facts().multiprocessors / slices);
    const dim3 grid(static_cast<unsigned>(std::min(fitting, tiles_of<Shape>(operands))), 1,
                    static_cast<unsigned>(slices));
    kernel<<<grid, kPingPongThreads, Shape::kSharedBytes, stream.handle()>>>(operands, store);
  }
};

/// Blocks is a BlockPerTile or PersistentBlocks, `sets` the features that can be fused.
template <class Blocks, class... Sets>
void launch_wgmma(CudaStream& stream, const GemmLaunch& launch, Sets... sets) {
  const auto launch_with = [&](const auto& store) {
    Blocks::launch(stream, launch, store);
    check_cuda(cudaGetLastError(), "launching a matrix product");
  };
  if (launch.features == kPlain) {
    launch_with(output_of(launch));
  } else {
    require_fused(launch, (with_fused_output(launch, sets, launch_with) || ...));
  }
}

/// The features that either b has fused: copies make every b K-major.
template <class Blocks>
void launch_k_major_wgmma(CudaStream& stream, const GemmLaunch& launch) {
  launch_wgmma<Blocks>(stream, launch, FusedFeatures<Major::kK, Major::kK>::Sets{},
                       FusedFeatures<Major::kK, Major::kMN>::Sets{});
}

template <class Shape>
void launch_rounded(CudaStream& stream, const GemmLaunch& launch) {
  launch_k_major_wgmma<BlockPerTile<RoundedProducts<Shape>>>(stream, launch);
}

template <class Shape>
void launch_pingpong(CudaStream& stream, const GemmLaunch& launch) {
  launch_k_major_wgmma<PersistentBlocks<Shape>>(stream, launch);
}

template <class Shape>
void launch_mn_major(CudaStream& stream, const GemmLaunch& launch) {
  launch_wgmma<BlockPerTile<MnMajorProducts<Shape>>>(stream, launch,
                                                     FusedFeatures<Major::kMN, Major::kMN>::Sets{});
}

template <class Shape>
void launch_split(CudaStream& stream, const GemmLaunch& launch) {
  if (launch.problem.trans_a == Transpose::kNo) {
    launch_k_major_wgmma<BlockPerTile<SplitProducts<Shape, Major::kK>>>(stream, launch);
  } else {
    launch_wgmma<BlockPerTile<SplitProducts<Shape, Major::kMN>>>(
        stream, launch, FusedFeatures<Major::kMN, Major::kMN>::Sets{});
  }
}

}  // namespace lockstep::cuda
