#pragma once

// From a launch's run-time transposes and features to one of the kernels of a tile.

#include <cuda_runtime.h>

#include <type_traits>

#include "core/base/ceil_div.h"
#include "core/device/cuda_error.h"
#include "kernels/cuda/allow_shared.cuh"
#include "kernels/cuda/gemm/epilogue.cuh"
#include "kernels/cuda/gemm/launch.h"
#include "kernels/cuda/gemm/majors.h"
#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/cuda/gemm/output.cuh"
#include "kernels/cuda/grid.h"

namespace lockstep::cuda {

inline Output output_of(const GemmLaunch& launch) {
  const Gemm<CudaDevice>& problem = launch.problem;
  float* const data = launch.partials != nullptr ? launch.partials : problem.c.data();
  return make_output(data, problem.m, problem.n, launch.plan.slice_depth);
}

template <unsigned kFeatures>
FusedOutput<kFeatures> fused_output_of(const GemmLaunch& launch) {
  return {output_of(launch), epilogue_operands_of(launch.problem),
          static_cast<int>(launch.plan.slice_depth)};
}

/// Kernel::get<A, B, Store>() is the kernel of a tile of Kernel::Shape.
template <class Kernel, Major kA, Major kB, class Store>
void launch_kernel(CudaStream& stream, const GemmLaunch& launch, const Store& store) {
  using Shape = typename Kernel::Shape;
  const Gemm<CudaDevice>& problem = launch.problem;
  auto* kernel = Kernel::template get<kA, kB, Store>();
  allow_shared(kernel, Shape::kSharedBytes);
  const dim3 grid(static_cast<unsigned>(ceil_div(problem.n, Shape::kBlockN)),
                  blocks_down(problem.m, Shape::kBlockM, "rows"),
                  static_cast<unsigned>(launch.plan.slices));
  kernel<<<grid, Shape::kThreads, Shape::kSharedBytes, stream.handle()>>>(
      make_operand<kA>(problem.a.data(), problem.m, problem.k),
      make_operand<kB>(problem.b.data(), problem.n, problem.k), store);
  check_cuda(cudaGetLastError(), "launching a matrix product");
}

/// Calls body(store) with the store that has the launch's features fused, when they are one of the
/// sets; whether they are.
template <unsigned... kFeatures, class Body>
[[nodiscard]] bool with_fused_output(const GemmLaunch& launch, FeatureSets<kFeatures...> /*sets*/,
                                     Body body) {
  [[maybe_unused]] const auto call_if = [&](auto features) {
    if (launch.features != features()) {
      return false;
    }
    body(fused_output_of<features()>(launch));
    return true;
  };
  return (call_if(std::integral_constant<unsigned, kFeatures>{}) || ...);
}

template <class Kernel>
void launch_product(CudaStream& stream, const GemmLaunch& launch) {
  dispatch_majors(launch.problem.trans_a, launch.problem.trans_b, [&](auto a, auto b) {
    constexpr Major kA = a();
    constexpr Major kB = b();
    const auto launch_with = [&](const auto& store) {
      launch_kernel<Kernel, kA, kB>(stream, launch, store);
    };
    if (launch.features == kPlain) {
      launch_with(output_of(launch));
    } else {
      require_fused(launch,
                    with_fused_output(launch, typename FusedFeatures<kA, kB>::Sets{}, launch_with));
    }
  });
}

template <class Kernel>
void launch_plain_product(CudaStream& stream, const GemmLaunch& launch) {
  require_fused(launch, launch.features == kPlain);
  dispatch_majors(launch.problem.trans_a, launch.problem.trans_b, [&](auto a, auto b) {
    launch_kernel<Kernel, a(), b()>(stream, launch, output_of(launch));
  });
}

}  // namespace lockstep::cuda
