#pragma once

// How the attention kernels see global memory: one head's rows inside of the packed projection.

#include <cmath>
#include <cstdint>

#include "core/device/cuda_device.h"
#include "kernels/attention.h"
#include "kernels/cuda/pack.cuh"

namespace lockstep::cuda {

/// All heads of all sequences, numbered as in lse: sequence by sequence.
struct Heads {
  int count;  ///< heads of all sequences together
  int per_sequence;
  int time;
  int head_dim;
  bool vectorized;  ///< every head's rows start at multiples of 16 bytes in every tensor

  __host__ __device__ int64_t channels() const {
    return static_cast<int64_t>(per_sequence) * head_dim;
  }
  /// Floats between neighbouring positions, in (B, T, 3C) and in (B, T, C).
  __host__ __device__ int64_t packed_stride() const { return 3 * channels(); }
  __host__ __device__ int64_t stride() const { return channels(); }
  /// The first element of a head: of its q in (B, T, 3C), and in (B, T, C).
  __device__ int64_t packed_offset(int head) const {
    return head / per_sequence * (time * packed_stride()) + head % per_sequence * head_dim;
  }
  __device__ int64_t offset(int head) const {
    return head / per_sequence * (time * stride()) + head % per_sequence * head_dim;
  }
};

/// The heads of tensors that start at `pointers`.
template <class... Pointers>
Heads heads_of(const AttentionShape& shape, Pointers... pointers) {
  return {.count = static_cast<int>(shape.batch * shape.heads),
          .per_sequence = static_cast<int>(shape.heads),
          .time = static_cast<int>(shape.time),
          .head_dim = static_cast<int>(shape.head_dim),
          .vectorized = shape.head_dim % 4 == 0 && all_aligned16(pointers...)};
}

/// The factor of q·k.
inline float score_scale(int64_t head_dim) {
  return 1.0F / std::sqrt(static_cast<float>(head_dim));
}

/// Writes the elements [d, d + 4) of a head's row that exist.
__device__ inline void store_row4(float* row, int d, float4 value, const Heads& heads) {
  if (heads.vectorized && d < heads.head_dim) {
    *reinterpret_cast<float4*>(row + d) = value;
    return;
  }
  const float values[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if (d + e < heads.head_dim) {
      row[d + e] = values[e];
    }
  }
}

}  // namespace lockstep::cuda
