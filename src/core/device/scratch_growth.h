#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace lockstep {

/// How large a block of scratch memory a stream takes when `wanted` bytes are more than those of
/// its block of `present`. A little more than is wanted, so that ops which want nearly the same
/// share one block. And at least twice as much each time: the blocks left behind, which enqueued
/// ops may still use, are together no larger than the last.
inline int64_t grown_scratch(int64_t wanted, int64_t present) {
  const auto unit = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(wanted)) / 16);
  const int64_t rounded = unit > 0 ? (wanted + unit - 1) / unit * unit : wanted;
  return std::max(rounded, 2 * present);
}

}  // namespace lockstep
