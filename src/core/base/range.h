#pragma once

#include <cstdint>

namespace lockstep {

/// Half-open range [begin, end) of element indices in an arena.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  constexpr int64_t size() const { return end - begin; }
  constexpr bool empty() const { return end <= begin; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

}  // namespace lockstep
