#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/random.h"

/// What a rank puts into element i of the window before a sum.
namespace lockstep {

/// Small integers: every order of additions gives the same exact sum.
inline float integer_at(int rank, int64_t i) {
  return static_cast<float>((i * 31 + int64_t{rank} * 17) % 1000 - 300);
}

/// Reals of many magnitudes, whose sum depends on the order of additions.
inline float real_at(int rank, int64_t i) {
  const uint64_t bits = random_bits(3, static_cast<uint64_t>(rank), static_cast<uint64_t>(i));
  return std::ldexp(static_cast<float>(bits % 16777213), static_cast<int>(bits >> 60) - 30);
}

}  // namespace lockstep
