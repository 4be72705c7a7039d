#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/random.h"

namespace lockstep {

/// N(0, 1), repeated with a prime period: drawing every element of large operands would take longer
/// than the bench. Streams are independent of each other.
inline std::vector<float> normal_values(int64_t size, uint64_t stream) {
  constexpr std::size_t period = 1048573;
  std::vector<float> values(static_cast<std::size_t>(size));
  const std::size_t drawn = std::min(values.size(), period);
  for (std::size_t i = 0; i < drawn; ++i) {
    values[i] = static_cast<float>(random_normals(1, stream, i / 4)[i % 4]);
  }
  for (std::size_t i = drawn; i < values.size(); ++i) {
    values[i] = values[i - drawn];
  }
  return values;
}

}  // namespace lockstep
