#include "comm/ring_schedule.h"

#include <algorithm>

#include "core/base/error.h"

namespace lockstep {
namespace {

int64_t modulo(int64_t value, int64_t divisor) {
  return (value % divisor + divisor) % divisor;
}

/// One rank's part in one collective. Of an all-reduce, step -1 publishes this rank's own data,
/// steps 0 to n-2 reduce, and steps n-1 to 2n-3 copy. A reduce-scatter ends with the last reduce
/// step; an all-gather begins with it, when the sum is there already.
class Plan {
 public:
  Plan(int rank, int world_size, Range range, int64_t segment_elements, CollectiveKind kind)
      : rank_(rank),
        world_(world_size),
        range_(range),
        segment_elements_(segment_elements),
        kind_(kind) {}

  int64_t first_group() const { return range_.begin / segment_elements_ / world_; }
  int64_t last_group() const { return (range_.end - 1) / segment_elements_ / world_; }
  int64_t first_step() const { return kind_ == CollectiveKind::kAllGather ? world_ - 2 : -1; }
  int64_t last_step() const {
    return kind_ == CollectiveKind::kReduceScatter ? world_ - 2 : 2 * world_ - 3;
  }

  /// Takes one step of one group: consumes what the predecessor sent in it, and publishes the
  /// result for the successor's next step. In the first step the result is there, and after the
  /// last one nobody wants it.
  void take(int64_t group, int64_t step) {
    const bool reduce = step < world_ - 1;
    const int64_t behind = reduce ? step + 2 : step - world_ + 2;
    const int64_t segment = group * world_ + modulo(rank_ - behind, world_);
    const Range part = {std::max(range_.begin, segment * segment_elements_),
                        std::min(range_.end, (segment + 1) * segment_elements_)};
    if (part.empty()) {
      return;
    }
    if (step != first_step()) {
      actions_.push_back({reduce ? RingAction::Kind::kReduce : RingAction::Kind::kCopy, part});
    }
    if (step != last_step()) {
      actions_.push_back({RingAction::Kind::kPublish, part});
    }
  }

  std::vector<RingAction> actions() && { return std::move(actions_); }

 private:
  int64_t rank_;
  int64_t world_;
  Range range_;
  int64_t segment_elements_;
  CollectiveKind kind_;
  std::vector<RingAction> actions_;
};

}  // namespace

std::vector<RingAction> ring_schedule(int rank, int world_size, Range range, const RingPace& pace,
                                      CollectiveKind kind) {
  LOCKSTEP_CHECK(rank >= 0 && rank < world_size, "rank {} of {}", rank, world_size);
  LOCKSTEP_CHECK(range.begin >= 0 && pace.groups_ahead >= 0, "range [{}, {}), {} groups ahead",
                 range.begin, range.end, pace.groups_ahead);
  LOCKSTEP_CHECK(pace.segment_elements == kSegmentElements || world_size <= 2,
                 "segments of {} elements for {} ranks", pace.segment_elements, world_size);
  if (world_size == 1 || range.empty()) {
    return {};
  }
  const bool large =
      kind == CollectiveKind::kAllReduce && range.size() >= 4 * pace.segment_elements;
  Plan plan(rank, world_size, range, large ? pace.segment_elements : kSegmentElements, kind);
  const int64_t first = plan.first_group();
  const int64_t last = plan.last_group();
  const int64_t ahead = pace.groups_ahead == 0 ? last - first + 1 : pace.groups_ahead;
  // A successor takes step k + 1 of a group `ahead` turns after this rank took step k and published
  // its result, with the steps of a turn in the same order: so it meets what is published in order.
  for (int64_t turn = first + plan.first_step() * ahead; turn <= last + plan.last_step() * ahead;
       ++turn) {
    for (int64_t step = plan.last_step(); step >= plan.first_step(); --step) {
      const int64_t group = turn - step * ahead;
      if (group >= first && group <= last) {
        plan.take(group, step);
      }
    }
  }
  return std::move(plan).actions();
}

}  // namespace lockstep
