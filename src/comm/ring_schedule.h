#pragma once

#include <cstdint>
#include <vector>

#include "comm/collective_kind.h"
#include "core/base/arena_shard.h"
#include "core/base/range.h"

namespace lockstep {

/// How the work of a ring is divided, which is a matter of its transports; the same on all ranks.
struct RingPace {
  /// Segments are taken in groups of one for each owner. A rank publishes its own data this many
  /// groups before it needs its neighbour's, and each step of a group comes as many groups after
  /// the step before it: that many segments of each step are on their way, which hides the latency
  /// of a link, and no more, so that they are still in the cache when they are read. 0: all steps
  /// of one kind come together, for a transport that holds nothing in between.
  int64_t groups_ahead = 4;
  /// A sum of two has one order: two ranks may take larger segments in an all-reduce where messages
  /// are expensive. A range of fewer than four of them is still cut into the smaller ones, so that
  /// both ranks have a share.
  int64_t segment_elements = kSegmentElements;
};

/// One thing that a rank does in a collective of the ring.
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

/// What `rank` of `world_size` does, in order, in a collective of `range` of everyone's window, in
/// place. Pure: no memory, no transport.
///
/// The partial sum of a segment starts at the rank after its owner and travels to the owner (n-1
/// reduce steps), then the finished sum travels on (n-1 copy steps); each rank sends 2(n-1)/n of
/// the range (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009). The order of
/// additions follows from the segment's owner alone, so any division of the window into ranges
/// gives the same bits. Each segment is forwarded as soon as it is consumed.
///
/// Reduce-scatter is the first half of it and all-gather the second, of (n-1)/n of the range each.
/// There owners are ArenaShard's at any pace.
///
/// Nothing is overwritten while the successor may still read it, with one exception that the
/// executor closes: after the last action the successor may still read the segments published last.
std::vector<RingAction> ring_schedule(int rank, int world_size, Range range, const RingPace& pace,
                                      CollectiveKind kind = CollectiveKind::kAllReduce);

}  // namespace lockstep
