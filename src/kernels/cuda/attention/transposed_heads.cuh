#pragma once

#include "core/device/cuda_device.h"
#include "kernels/cuda/attention/heads.cuh"

// Copies of heads in which tokens are contiguous: what sums over tokens read.

namespace lockstep::cuda {

/// Rows of one matrix that heads have: of q, k or v in (B, T, 3 C), or of (B, T, C).
struct HeadRows {
  const float* data = nullptr;  ///< of the first head, aligned to 16 bytes
  bool packed = false;          ///< in (B, T, 3 C)
};

/// A launch's part: `count` matrices.
struct TransposedHeads {
  Heads heads;  ///< of 64 elements; T is a multiple of 64
  float* to;  ///< (count, heads, 64, T), tokens of each eight in the order of layout/token_order.h
  HeadRows from[3] = {};
  int count;
  const float* out = nullptr;  ///< (B, T, C), or null
  float* delta = nullptr;      ///< (heads, T): row sums of `out` times the last matrix
};
void transpose_heads(CudaStream& stream, const TransposedHeads& args);

}  // namespace lockstep::cuda
