#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"
#include "kernels/cuda/gemm/plan.h"
#include "kernels/gemm.h"

// The kernels that gemm chooses from, each in a translation unit of its own.

namespace lockstep::cuda {

/// A product, and where it goes: into problem.c, finished, by the fused `features` (features.h),
/// or as the plain sums of its slices into `partials` (slices, m, n).
struct GemmLaunch {
  const Gemm<CudaDevice>& problem;
  GemmPlan plan;
  unsigned features = 0;
  float* partials = nullptr;  ///< null: into problem.c
  int64_t a_pitch = 0;        ///< elements from row to row of the operands, for kernels that can
  int64_t b_pitch = 0;        ///< compute a part of a product
  float* a_sums = nullptr;    ///< (slices, a_sums_pitch), or null: the sums of a's rows over each
  int64_t a_sums_pitch = 0;   ///< slice, by the kernels that read an MN-major a as it lies
};

using GemmLauncher = void (*)(CudaStream& stream, const GemmLaunch& launch);

/// `aligned`: whether rows of every operand start at multiples of 16 bytes.
GemmLauncher launcher_of(GemmKernel kernel, bool aligned);

/// Throws InternalError unless `fused`, whether the launch's features are among those that its
/// kernel has fused.
void require_fused(const GemmLaunch& launch, bool fused);

/// Rows of every operand start at multiples of 16 bytes.
void launch_mma_128x128(CudaStream& stream, const GemmLaunch& launch);
void launch_mma_128x64(CudaStream& stream, const GemmLaunch& launch);
void launch_mma_64x64(CudaStream& stream, const GemmLaunch& launch);
void launch_simt_128x128(CudaStream& stream, const GemmLaunch& launch);
void launch_simt_128x64(CudaStream& stream, const GemmLaunch& launch);
void launch_simt_64x64(CudaStream& stream, const GemmLaunch& launch);
/// For operands of any alignment; no features.
void launch_mma_unaligned(CudaStream& stream, const GemmLaunch& launch);
void launch_simt_unaligned(CudaStream& stream, const GemmLaunch& launch);
/// Rows are aligned; b is (n, k), copied if need be; a is (m, k), of the mn kernels (k, m), of
/// the split ones either.
void launch_wgmma_128x256(CudaStream& stream, const GemmLaunch& launch);
void launch_wgmma_128x192(CudaStream& stream, const GemmLaunch& launch);
void launch_wgmma_128x128(CudaStream& stream, const GemmLaunch& launch);
void launch_wgmma_128x96(CudaStream& stream, const GemmLaunch& launch);
void launch_wgmma_128x64(CudaStream& stream, const GemmLaunch& launch);
void launch_pingpong_64x256(CudaStream& stream, const GemmLaunch& launch);
void launch_pingpong_64x192(CudaStream& stream, const GemmLaunch& launch);
void launch_wgmma_mn_128x256(CudaStream& stream, const GemmLaunch& launch);
void launch_wgmma_mn_128x192(CudaStream& stream, const GemmLaunch& launch);
void launch_wgmma_mn_128x128(CudaStream& stream, const GemmLaunch& launch);
void launch_split_128x128(CudaStream& stream, const GemmLaunch& launch);
void launch_split_128x96(CudaStream& stream, const GemmLaunch& launch);

}  // namespace lockstep::cuda
