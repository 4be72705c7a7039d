#pragma once

#include "core/device/cuda_device.h"
#include "kernels/gemm.h"

// What a product asks of the kernels.

namespace lockstep::cuda {

/// Throws InternalError unless each view holds what the sizes say, and kernels can count to them.
void check_product(const Gemm<CudaDevice>& problem);

/// What follows the product: a set of Feature (features.h).
unsigned features_of(const Gemm<CudaDevice>& problem);

/// Whether kernels for aligned rows have `features` fused behind products of these majors.
bool is_fused(const Gemm<CudaDevice>& problem, unsigned features);

/// Whether a view starts at a multiple of 16 bytes, or is empty.
bool aligned(CudaView<const float> view);

/// Whether every row of every operand starts at a multiple of 16 bytes.
bool aligned_rows(const Gemm<CudaDevice>& problem);

}  // namespace lockstep::cuda
