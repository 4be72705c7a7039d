#pragma once

#include <cstdint>

#include "core/device/cuda_facts.h"
#include "kernels/attention.h"

// Which implementation of attention serves what on a GPU, and the memory that it takes. Pure.

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

/// Whether kFlashTf32 of this shape is for wgmma on a GPU that has it, where that is faster than
/// mma.sync.
bool wgmma_takes(const AttentionShape& shape);
inline constexpr int kWgmmaHeadDim = 64;
/// It takes a multiple of these.
inline constexpr int kWgmmaTokens = 128;

/// Elements of scratch memory that the kernels by wgmma take: a matrix of every head in forward,
/// three in backward, transposed.
int64_t wgmma_forward_scratch_elements(const AttentionShape& shape);
int64_t wgmma_backward_scratch_elements(const AttentionShape& shape);
inline constexpr int kWgmmaTransposedMatrices = 3;

/// What of a stream's scratch memory an implementation takes at most, on any GPU.
int64_t attention_forward_scratch_bytes(AttentionKind kind, const AttentionShape& shape);
int64_t attention_backward_scratch_bytes(AttentionKind kind, const AttentionShape& shape);

}  // namespace lockstep
