#pragma once

#include "kernels/cuda/gemm/plan.h"

// The kernels that gemm chooses from, each in a translation unit of its own.

namespace lockstep::cuda {

/// A product, and where it goes: into problem.c, finished, by the fused `features` (features.h),
/// or as the plain sums of its slices into `partials` (slices, m, n).
struct GemmLaunch {
  const Gemm<CudaDevice>& problem;
  GemmPlan plan;
  unsigned features = 0;
  float* partials = nullptr;  ///< null: into problem.c
};

using GemmLauncher = void (*)(CudaStream& stream, const GemmLaunch& launch);

/// Needs rows that start at multiples of 16 bytes, in every operand.
void launch_mma_large(CudaStream& stream, const GemmLaunch& launch);
void launch_mma_medium(CudaStream& stream, const GemmLaunch& launch);
void launch_mma_small(CudaStream& stream, const GemmLaunch& launch);
void launch_simt_large(CudaStream& stream, const GemmLaunch& launch);
void launch_simt_medium(CudaStream& stream, const GemmLaunch& launch);
void launch_simt_small(CudaStream& stream, const GemmLaunch& launch);
/// For operands of any alignment; small tiles, no features.
void launch_mma_unaligned(CudaStream& stream, const GemmLaunch& launch);
void launch_simt_unaligned(CudaStream& stream, const GemmLaunch& launch);

/// c from the sums of `slices` slices, added in their order, and then `features`.
void finish_product(CudaStream& stream, const Gemm<CudaDevice>& problem, const float* partials,
                    int64_t slices, unsigned features);

}  // namespace lockstep::cuda
