#pragma once

// From a launch's run-time transposes and features to one of the kernels of a tile.

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "kernels/cuda/gemm/dispatch.cuh"
#include "kernels/cuda/gemm/epilogue.cuh"
#include "kernels/cuda/gemm/launch.h"

namespace lockstep::cuda {

inline Output output_of(const GemmLaunch& launch) {
  const Gemm<CudaDevice>& problem = launch.problem;
  float* const data = launch.partials != nullptr ? launch.partials : problem.c.data();
  return {data, static_cast<int>(problem.m), static_cast<int>(problem.n),
          problem.n % 4 == 0 && aligned16(data), static_cast<int>(launch.plan.slice_depth)};
}

template <unsigned kFeatures>
FusedOutput<kFeatures> fused_output_of(const GemmLaunch& launch) {
  return {output_of(launch), epilogue_operands_of(launch.problem),
          static_cast<int>(launch.plan.slice_depth)};
}

/// A kernel may use more than 48 KiB of shared memory only after it was told so.
template <class Kernel>
void allow_shared(Kernel* kernel, int bytes) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "raising a kernel's shared memory");
}

/// Kernel::get<A, B, Store>() is the kernel of a tile of Kernel::Shape.
template <class Kernel, Major kA, Major kB, class Store>
void launch_kernel(CudaStream& stream, const GemmLaunch& launch, const Store& store) {
  using Shape = typename Kernel::Shape;
  const Gemm<CudaDevice>& problem = launch.problem;
  auto* kernel = Kernel::template get<kA, kB, Store>();
  allow_shared(kernel, Shape::kSharedBytes);
  const dim3 grid(static_cast<unsigned>((problem.n + Shape::kBlockN - 1) / Shape::kBlockN),
                  static_cast<unsigned>((problem.m + Shape::kBlockM - 1) / Shape::kBlockM),
                  static_cast<unsigned>(launch.plan.slices));
  kernel<<<grid, Shape::kThreads, Shape::kSharedBytes, stream.handle()>>>(
      make_operand<kA>(problem.a.data(), problem.m, problem.k),
      make_operand<kB>(problem.b.data(), problem.n, problem.k), store);
  check_cuda(cudaGetLastError(), "launching a matrix product");
}

template <class Kernel, Major kA, Major kB, unsigned... kFeatures>
void launch_fused(CudaStream& stream, const GemmLaunch& launch,
                  FeatureSets<kFeatures...> /*sets*/) {
  ((launch.features == kFeatures
        ? launch_kernel<Kernel, kA, kB>(stream, launch, fused_output_of<kFeatures>(launch))
        : void()),
   ...);
}

template <class Kernel>
void launch_product(CudaStream& stream, const GemmLaunch& launch) {
  dispatch_majors(launch.problem.trans_a, launch.problem.trans_b, [&](auto a, auto b) {
    if (launch.features == kPlain) {
      launch_kernel<Kernel, a(), b()>(stream, launch, output_of(launch));
    } else {
      launch_fused<Kernel, a(), b()>(stream, launch, typename FusedFeatures<a(), b()>::Sets{});
    }
  });
}

template <class Kernel>
void launch_plain_product(CudaStream& stream, const GemmLaunch& launch) {
  dispatch_majors(launch.problem.trans_a, launch.problem.trans_b, [&](auto a, auto b) {
    launch_kernel<Kernel, a(), b()>(stream, launch, output_of(launch));
  });
}

}  // namespace lockstep::cuda
