#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"
#include "kernels/attention.h"

namespace lockstep {

/// The implementations of attention on the GPU. All have the contract of kernels/attention.h.
enum class AttentionKind : uint8_t {
  kUnfused,    ///< product, softmax, product, with the T x T probabilities in scratch memory; fp32
  kFlashFp32,  ///< by tiles, products in FFMA
  kFlashTf32,  ///< by tiles, products on tensor cores
};

/// The largest head_dim of the flash kernels; larger heads are left to the unfused one.
inline constexpr int64_t kFlashHeadDim = 128;
/// The largest head_dim of all.
inline constexpr int64_t kMaxHeadDim = 256;

/// What serves heads of this size at this precision: a flash kernel up to kFlashHeadDim.
AttentionKind attention_kind(Precision precision, int64_t head_dim);

/// Attention by the named implementation, for tests and benches; attention_forward and
/// attention_backward of ops.h take attention_kind's.
void attention_forward(CudaStream& stream, AttentionKind kind,
                       const AttentionForward<CudaDevice>& args);
void attention_backward(CudaStream& stream, AttentionKind kind,
                        const AttentionBackward<CudaDevice>& args);

/// What of a stream's scratch memory an implementation takes at most, on any GPU.
int64_t attention_forward_scratch_bytes(AttentionKind kind, const AttentionShape& shape);
int64_t attention_backward_scratch_bytes(AttentionKind kind, const AttentionShape& shape);

}  // namespace lockstep
