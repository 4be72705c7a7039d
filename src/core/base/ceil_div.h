#pragma once

#include <cstdint>

namespace lockstep {

/// a / b rounded up, of numbers that are not negative.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace lockstep
