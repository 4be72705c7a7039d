#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"
#include "kernels/gemm.h"

// The end of products of which the kernel leaves the plain sums of slices of k.

namespace lockstep::cuda {

/// problem.c from the sums of `slices` slices (slices, m, n), added in their order, and then
/// `features`.
void finish_product(CudaStream& stream, const Gemm<CudaDevice>& problem, const float* partials,
                    int64_t slices, unsigned features);

/// The same for cᵀ: partials (slices, n, m), of plain sums.
void finish_transposed(CudaStream& stream, const Gemm<CudaDevice>& problem, const float* partials,
                       int64_t slices);

}  // namespace lockstep::cuda
