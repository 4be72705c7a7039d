#pragma once

#include "core/device/cuda_device.h"
#include "kernels/cuda/gemm/plan.h"
#include "kernels/gemm.h"

// What a product asks of the kernels.

namespace lockstep {

/// What a product's plan is made from.
GemmQuery query_of(const Gemm<CudaDevice>& problem);

namespace cuda {

/// Throws InternalError unless each view holds what the sizes say, and kernels can count to them.
void check_product(const Gemm<CudaDevice>& problem);

/// What follows the product: a set of Feature (features.h).
unsigned features_of(const Gemm<CudaDevice>& problem);

/// Whether kernels for aligned rows have `features` fused behind products of these majors.
bool is_fused(const Gemm<CudaDevice>& problem, unsigned features);

/// The product alone, with nothing that follows it.
Gemm<CudaDevice> without_features(Gemm<CudaDevice> problem);

/// cᵀ = bᵀ · a of an MN-major a and b; c stays as it is.
Gemm<CudaDevice> swapped(const Gemm<CudaDevice>& problem);

/// Whether a view starts at a multiple of 16 bytes, or is empty.
bool aligned(CudaView<const float> view);

/// Whether every row of every operand starts at a multiple of 16 bytes.
bool aligned_rows(const Gemm<CudaDevice>& problem);

}  // namespace cuda
}  // namespace lockstep
