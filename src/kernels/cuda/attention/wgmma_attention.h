#pragma once

#include "core/device/cuda_device.h"
#include "kernels/attention.h"
#include "kernels/cuda/attention/kind.h"

// Attention by warpgroup products: heads of 64 elements, compute capability 9.0.

namespace lockstep::cuda {

/// Whether wgmma_takes the shape of `args` and these kernels can compute it, on the stream's GPU.
bool wgmma_serves(const CudaStream& stream, const AttentionForward<CudaDevice>& args);
bool wgmma_serves(const CudaStream& stream, const AttentionBackward<CudaDevice>& args);

void wgmma_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args);
void wgmma_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args);

}  // namespace lockstep::cuda
