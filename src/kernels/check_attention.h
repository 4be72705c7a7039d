#pragma once

#include <cstdint>
#include <limits>

#include "core/base/error.h"
#include "kernels/attention.h"
#include "kernels/check_size.h"

// What attention asks of its arguments on every device. Not for .cu files: nvcc 13 cannot check
// fmt's format strings.

namespace lockstep {

/// Throws InternalError when a view is smaller than the shape says.
template <class Device>
void check_views(const AttentionForward<Device>& args) {
  const AttentionShape& shape = args.shape;
  const int64_t rows = shape.batch * shape.heads * shape.time;
  check_size("attention_forward: out", args.out.size(), rows * shape.head_dim);
  check_size("attention_forward: lse", args.lse.size(), rows);
  check_size("attention_forward: qkv", args.qkv.size(), 3 * rows * shape.head_dim);
}

template <class Device>
void check_views(const AttentionBackward<Device>& args) {
  const AttentionShape& shape = args.shape;
  const int64_t rows = shape.batch * shape.heads * shape.time;
  check_size("attention_backward: dqkv", args.dqkv.size(), 3 * rows * shape.head_dim);
  check_size("attention_backward: delta", args.delta.size(), rows);
  check_size("attention_backward: dout", args.dout.size(), rows * shape.head_dim);
  check_size("attention_backward: out", args.out.size(), rows * shape.head_dim);
  check_size("attention_backward: lse", args.lse.size(), rows);
  check_size("attention_backward: qkv", args.qkv.size(), 3 * rows * shape.head_dim);
}

/// And unless the position is one of an int32_t.
template <class Device>
void check_views(const AttentionDecode<Device>& args) {
  LOCKSTEP_CHECK(args.position >= 0 && args.position < std::numeric_limits<int32_t>::max(),
                 "attention of position {}", args.position);
  const int64_t channels = args.heads * args.head_dim;
  const int64_t cache = (args.position + 1) * channels;
  check_size("attention_decode: out", args.out.size(), channels);
  check_size("attention_decode: k_cache", args.k_cache.size(), cache);
  check_size("attention_decode: v_cache", args.v_cache.size(), cache);
  check_size("attention_decode: qkv", args.qkv.size(), 3 * channels);
}

}  // namespace lockstep
