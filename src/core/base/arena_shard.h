#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/range.h"

namespace lockstep {

/// An arena that ranks sum together is cut into segments of this many elements, counted from its
/// first one. Segment s is owned by rank s mod n: there its sum is finished. Part of the numerics:
/// another value gives other bits for more than two ranks, and other bits of norms.
inline constexpr int64_t kSegmentElements = 16384;

/// The segments of an arena that one of `ranks` ranks owns, one after another; the whole arena
/// where there is one rank.
struct ArenaShard {
  int64_t rank = 0;
  int64_t ranks = 1;

  /// The elements of this rank's segments in an arena of so many.
  constexpr int64_t size(int64_t arena_elements) const {
    const int64_t group = ranks * kSegmentElements;
    const int64_t rest = arena_elements % group - rank * kSegmentElements;
    return arena_elements / group * kSegmentElements +
           std::clamp<int64_t>(rest, 0, kSegmentElements);
  }

  /// Where the shard's element `index` lies in the arena.
  constexpr int64_t position(int64_t index) const {
    const int64_t segment = index / kSegmentElements * ranks + rank;
    return segment * kSegmentElements + index % kSegmentElements;
  }

  /// Calls `body` with each of the segments in an arena of so many elements: where it lies in the
  /// arena, and where in the shard.
  template <class Body>
  void for_each_segment(int64_t arena_elements, const Body& body) const {
    const int64_t owned = size(arena_elements);
    for (int64_t index = 0; index < owned; index += kSegmentElements) {
      const int64_t count = std::min(kSegmentElements, owned - index);
      const int64_t at = position(index);
      body(Range{at, at + count}, Range{index, index + count});
    }
  }

  constexpr bool owns(int64_t position) const {
    return position / kSegmentElements % ranks == rank;
  }
};

}  // namespace lockstep
