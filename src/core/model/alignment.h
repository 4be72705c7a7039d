#pragma once

#include <cstdint>

namespace lockstep {

/// Tensors of an arena or a workspace begin at multiples of this many elements: 256 bytes, the
/// widest access of any device.
inline constexpr int64_t kTensorAlignment = 64;

/// The next element at which a tensor may begin.
constexpr int64_t align_tensor(int64_t element) {
  return (element + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

}  // namespace lockstep
