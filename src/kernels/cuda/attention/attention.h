#pragma once

#include "core/device/cuda_device.h"
#include "kernels/attention.h"
#include "kernels/cuda/attention/kind.h"

namespace lockstep {

/// Attention by the named implementation, for tests and benches; attention_forward and
/// attention_backward of ops.h take attention_kind's.
void attention_forward(CudaStream& stream, AttentionKind kind,
                       const AttentionForward<CudaDevice>& args);
void attention_backward(CudaStream& stream, AttentionKind kind,
                        const AttentionBackward<CudaDevice>& args);

}  // namespace lockstep
