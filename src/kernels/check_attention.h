#pragma once

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/check_size.h"

// What attention asks of its arguments on every device.

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

}  // namespace lockstep
