#pragma once

#include <cstdint>

#include "core/device/cpu_device.h"

// Causal multi-head attention. Enqueued in stream order; views must not overlap. Throws
// InternalError when a view is smaller than the shape says or, on the GPU, for heads of more than
// 256 elements, sequences of more than 2^20 positions, and 2^31 heads of all sequences together.

namespace lockstep {

/// The shape of a causal multi-head attention over the packed projection. C = heads * head_dim.
struct AttentionShape {
  int64_t batch = 0;     ///< B
  int64_t time = 0;      ///< T
  int64_t heads = 0;     ///< H
  int64_t head_dim = 0;  ///< D
};

/// out = softmax(q·kᵀ / sqrt(D), causal) · v for each head, by tiles with an online softmax (Dao et
/// al., 2022): no T x T matrix is held, but by the GPU for heads of more than 128 elements, in
/// scratch memory. lse = log of the sum of exponentials of each row of scores, kept for backward.
template <class Device>
struct AttentionForward {
  AttentionShape shape;
  View<Device, float> out;        ///< (B, T, C)
  View<Device, float> lse;        ///< (B, H, T)
  View<Device, const float> qkv;  ///< (B, T, 3C): q, then k, then v, each (H, D) inside
};
void attention_forward(CpuStream& stream, const AttentionForward<CpuDevice>& args);

/// The gradient of the packed projection; probabilities are recomputed from lse.
template <class Device>
struct AttentionBackward {
  AttentionShape shape;
  View<Device, float> dqkv;        ///< (B, T, 3C), overwritten
  View<Device, float> delta;       ///< (B, H, T), scratch: row sums of dout * out
  View<Device, const float> dout;  ///< (B, T, C)
  View<Device, const float> out;   ///< (B, T, C)
  View<Device, const float> lse;   ///< (B, H, T)
  View<Device, const float> qkv;   ///< (B, T, 3C)
};
void attention_backward(CpuStream& stream, const AttentionBackward<CpuDevice>& args);

/// One new position of one sequence against a cache: writes the position's k and v into the cache,
/// then attends over positions 0 … position. Throws InternalError also for a position below 0 or
/// from 2^31 - 1 on.
template <class Device>
struct AttentionDecode {
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t position = 0;
  View<Device, float> out;        ///< (C)
  View<Device, float> k_cache;    ///< (positions, C)
  View<Device, float> v_cache;    ///< (positions, C)
  View<Device, const float> qkv;  ///< (3C)
};
void attention_decode(CpuStream& stream, const AttentionDecode<CpuDevice>& args);

}  // namespace lockstep
