#include "comm/ring_schedule.h"

#include <algorithm>

#include "core/base/error.h"

namespace lockstep {
namespace {

// Calls `visit` with each non-empty part of `range` in the segments [first, last) of one owner.
template <class Visit>
void for_each_segment(Range range, int64_t first, int64_t last, int64_t owner, int64_t world,
                      Visit visit) {
  const int64_t to_owner = (owner - first % world + world) % world;
  for (int64_t segment = first + to_owner; segment < last; segment += world) {
    const Range part = {std::max(range.begin, segment * kSegmentElements),
                        std::min(range.end, (segment + 1) * kSegmentElements)};
    if (!part.empty()) {
      visit(part);
    }
  }
}

}  // namespace

std::vector<RingAction> ring_schedule(int rank, int world_size, Range range,
                                      int64_t segments_per_step) {
  LOCKSTEP_CHECK(rank >= 0 && rank < world_size, "rank {} of {}", rank, world_size);
  LOCKSTEP_CHECK(range.begin >= 0 && segments_per_step >= 0, "range [{}, {}), {} segments a step",
                 range.begin, range.end, segments_per_step);
  std::vector<RingAction> actions;
  if (world_size == 1 || range.empty()) {
    return actions;
  }
  const int64_t world = world_size;
  const int64_t begin = range.begin / kSegmentElements;
  const int64_t end = (range.end + kSegmentElements - 1) / kSegmentElements;
  const int64_t block = segments_per_step == 0 ? end - begin : segments_per_step * world;
  const auto owner_at = [&](int64_t distance) { return (rank - distance + 2 * world) % world; };

  for (int64_t first = begin; first < end; first += block) {
    const int64_t last = std::min(first + block, end);
    const auto step = [&](int64_t distance, auto visit) {
      for_each_segment(range, first, last, owner_at(distance), world, visit);
    };
    const auto publish = [&](Range part) { actions.push_back({RingAction::Kind::kPublish, part}); };
    step(1, publish);
    for (int64_t distance = 2; distance <= world; ++distance) {
      step(distance, [&](Range part) {
        actions.push_back({RingAction::Kind::kReduce, part});
        publish(part);
      });
    }
    for (int64_t distance = 1; distance < world; ++distance) {
      step(distance, [&](Range part) {
        actions.push_back({RingAction::Kind::kCopy, part});
        if (distance + 1 < world) {
          publish(part);
        }
      });
    }
  }
  return actions;
}

}  // namespace lockstep
