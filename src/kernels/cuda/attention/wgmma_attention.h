#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"
#include "kernels/attention.h"

// Attention by warpgroup products: heads of 64 elements, compute capability 9.0.

namespace lockstep::cuda {

inline constexpr int kWgmmaHeadDim = 64;

/// Whether attention of this shape is for these kernels: where they are faster than those by
/// mma.sync.
bool wgmma_takes(const AttentionShape& shape);

/// And whether they can compute `args`, on the stream's GPU.
bool wgmma_serves(const CudaStream& stream, const AttentionForward<CudaDevice>& args);
bool wgmma_serves(const CudaStream& stream, const AttentionBackward<CudaDevice>& args);

/// What they take of scratch memory.
int64_t wgmma_forward_scratch_elements(const AttentionShape& shape);
int64_t wgmma_backward_scratch_elements(const AttentionShape& shape);

void wgmma_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args);
void wgmma_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args);

}  // namespace lockstep::cuda
