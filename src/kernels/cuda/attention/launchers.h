#pragma once

#include "core/device/cuda_device.h"
#include "kernels/attention.h"

// Each implementation's part behind attention.h. Sizes are checked and nothing is empty.
namespace lockstep::cuda {

void unfused_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args);
void unfused_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args);

void flash_fp32_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args);
void flash_fp32_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args);

void flash_tf32_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args);
void flash_tf32_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args);

/// delta of the flash kernels' backward.
void sum_delta(CudaStream& stream, const AttentionBackward<CudaDevice>& args);

void decode(CudaStream& stream, const AttentionDecode<CudaDevice>& args);

}  // namespace lockstep::cuda
