#pragma once

#include <cstdint>
#include <vector>

#include "core/base/range.h"

namespace lockstep {

/// The window is cut into segments of this many elements, counted from its first one. Segment s is
/// owned by rank s mod n: there its sum is finished. Part of the numerics: another value gives
/// other bits for more than two ranks.
inline constexpr int64_t kSegmentElements = 16384;

/// One thing that a rank does in a ring all-reduce.
struct RingAction {
  enum class Kind : uint8_t {
    kPublish,  ///< the successor may have `range` of this rank's window
    kReduce,   ///< window[range] += the predecessor's next published range, which is `range`
    kCopy      ///< window[range] = the predecessor's next published range, which is `range`
  };
  Kind kind = Kind::kPublish;
  Range range;

  friend bool operator==(const RingAction&, const RingAction&) = default;
};

/// What `rank` of `world_size` does, in order, to sum `range` of everyone's window in place. Pure:
/// no memory, no transport.
///
/// The partial sum of a segment starts at the rank after its owner and travels to the owner (n-1
/// reduce steps), then the finished sum travels on (n-1 copy steps); each rank sends
/// 2(n-1)/n of the range (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009). The
/// order of additions follows from the segment's owner alone, so any division of the window into
/// ranges gives the same bits. Each segment is forwarded as soon as it is consumed. A range is
/// walked in blocks of `segments_per_step` segments of each owner, all steps of a block before the
/// next one, so that a neighbour reads what is still in the cache; 0 means one block.
///
/// Nothing is overwritten while the successor may still read it, with one exception that the
/// executor closes: after the last action the successor may still read the segments published last.
std::vector<RingAction> ring_schedule(int rank, int world_size, Range range,
                                      int64_t segments_per_step);

}  // namespace lockstep
