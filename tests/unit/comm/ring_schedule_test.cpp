#include "comm/ring_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace lockstep {
namespace {

constexpr int64_t kS = kSegmentElements;

/// All ranks of one collective, each at some point of its schedule. An element's value is the list
/// of the ranks that were added up to make it, in order. Of an all-gather the owners have the sums
/// from the beginning.
class Simulation {
 public:
  Simulation(int world, Range range, const RingPace& pace,
             CollectiveKind kind = CollectiveKind::kAllReduce)
      : kind_(kind), ranks_(static_cast<size_t>(world)) {
    for (int rank = 0; rank < world; ++rank) {
      Rank& self = ranks_[static_cast<size_t>(rank)];
      self.schedule = ring_schedule(rank, world, range, pace, kind);
      for (const RingAction& action : self.schedule) {
        const int64_t begin = action.range.begin;
        const bool whole = kind == CollectiveKind::kAllGather && owns(rank, begin);
        self.parts[begin] = {action.range, whole ? order_of(begin, kS) : std::vector{rank}, 0};
      }
    }
  }

  /// Takes the next action of one rank; false when it has none or must wait for its predecessor.
  bool advance(size_t rank) {
    Rank& self = ranks_[rank];
    if (self.next == self.schedule.size()) {
      return false;
    }
    const RingAction action = self.schedule[self.next];
    Part& mine = self.parts.at(action.range.begin);
    EXPECT_EQ(mine.range, action.range);
    if (action.kind == RingAction::Kind::kPublish) {
      self.published.push_back({action.range, mine.version});
    } else {
      Rank& before = ranks_[(rank + ranks_.size() - 1) % ranks_.size()];
      if (before.published.empty()) {
        return false;
      }
      const Message message = before.published.front();
      before.published.pop_front();
      EXPECT_EQ(message.range, action.range) << "publishes must meet consumes in order";
      const Part& theirs = before.parts.at(action.range.begin);
      EXPECT_EQ(theirs.version, message.version) << "overwritten while the neighbour may read it";
      consume(action.kind, static_cast<int>(rank), theirs, mine);
    }
    ++self.next;
    return true;
  }

  /// Runs everything, always the first rank of `order()` that can go on.
  template <class Order>
  void run(Order order) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (const size_t rank : order()) {
        if (advance(rank)) {
          moved = true;
          break;
        }
      }
    }
  }

  /// Of everyone, or of a reduce-scatter's owners.
  void expect_sums(Range range, int64_t segment = kS) const {
    for (const size_t rank : ranks()) {
      const Rank& self = ranks_[rank];
      EXPECT_EQ(self.next, self.schedule.size()) << "a rank waits for ever";
      EXPECT_TRUE(self.published.empty()) << "data that nobody consumed";
      int64_t position = range.begin;
      for (const auto& [begin, part] : self.parts) {
        EXPECT_EQ(begin, position);
        position = part.range.end;
        if (kind_ != CollectiveKind::kReduceScatter || owns(static_cast<int>(rank), begin)) {
          EXPECT_EQ(part.value, order_of(begin, segment)) << "sum of the segment at " << begin;
        }
      }
      EXPECT_EQ(position, ranks_.size() == 1 ? range.begin : range.end);
    }
  }

  int64_t elements_sent(size_t rank) const {
    int64_t sent = 0;
    for (const RingAction& action : ranks_[rank].schedule) {
      sent += action.kind == RingAction::Kind::kPublish ? action.range.size() : 0;
    }
    return sent;
  }

  std::vector<size_t> ranks() const {
    std::vector<size_t> all(ranks_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }

 private:
  struct Part {
    Range range;
    std::vector<int> value;
    int version = 0;
  };
  struct Message {
    Range range;
    int version = 0;
  };
  struct Rank {
    std::vector<RingAction> schedule;
    size_t next = 0;
    std::map<int64_t, Part> parts;
    std::deque<Message> published;
  };

  bool owns(int rank, int64_t position) const {
    return ArenaShard{rank, std::ssize(ranks_)}.owns(position);
  }

  /// The order in which the ranks are added up there.
  std::vector<int> order_of(int64_t position, int64_t segment) const {
    const int64_t world = std::ssize(ranks_);
    std::vector<int> order;
    for (int64_t hop = 1; hop <= world; ++hop) {
      order.push_back(static_cast<int>((position / segment + hop) % world));
    }
    return order;
  }

  void consume(RingAction::Kind kind, int rank, const Part& theirs, Part& mine) const {
    if (kind == RingAction::Kind::kReduce) {
      EXPECT_EQ(mine.value, std::vector<int>{rank}) << "added twice";
      mine.value.insert(mine.value.begin(), theirs.value.begin(), theirs.value.end());
    } else {
      EXPECT_EQ(theirs.value.size(), ranks_.size()) << "copied before the sum was whole";
      mine.value = theirs.value;
    }
    ++mine.version;
  }

  CollectiveKind kind_;
  std::vector<Rank> ranks_;
};

const std::vector<Range> kRanges = {{0, 1},
                                    {kS - 1, kS + 1},
                                    {5, 6},
                                    {0, kS},
                                    {3, 2 * kS + 1},
                                    {kS / 2, 9 * kS + 5},
                                    {7 * kS, 40 * kS},
                                    {17, 29 * kS - 3}};

class RingScheduleOf : public testing::TestWithParam<CollectiveKind> {};

INSTANTIATE_TEST_SUITE_P(Works, RingScheduleOf,
                         testing::Values(CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
                                         CollectiveKind::kAllGather),
                         [](const testing::TestParamInfo<CollectiveKind>& tested) {
                           std::string name(collective_name(tested.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(RingScheduleOf, GivesEveryElementEveryRankOnceInTheOrderOfItsPosition) {
  std::mt19937 generator(7);
  for (int world = 1; world <= 9; ++world) {
    for (const Range range : kRanges) {
      for (const int64_t ahead : {0, 1, 2, 5}) {
        SCOPED_TRACE(testing::Message() << world << " ranks, [" << range.begin << ", " << range.end
                                        << "), " << ahead << " groups ahead");
        const RingPace pace{.groups_ahead = ahead};
        Simulation first_rank_first(world, range, pace, GetParam());
        first_rank_first.run([&] { return first_rank_first.ranks(); });
        first_rank_first.expect_sums(range);
        Simulation any_order(world, range, pace, GetParam());
        any_order.run([&] {
          std::vector<size_t> order = any_order.ranks();
          std::shuffle(order.begin(), order.end(), generator);
          return order;
        });
        any_order.expect_sums(range);
      }
    }
  }
}

TEST_P(RingScheduleOf, SendsTheLeastThatARingCan) {
  const int64_t halves = GetParam() == CollectiveKind::kAllReduce ? 2 : 1;
  for (int world = 2; world <= 9; ++world) {
    const Range range = {int64_t{world} * kS, int64_t{4} * world * kS};
    const Simulation simulation(world, range, {.groups_ahead = 2}, GetParam());
    for (const size_t rank : simulation.ranks()) {
      EXPECT_EQ(simulation.elements_sent(rank) * world,
                halves * (int64_t{world} - 1) * range.size());
    }
  }
}

TEST(RingSchedule, ForwardsASegmentRightAfterItWasConsumed) {
  for (int world = 3; world <= 9; ++world) {
    const std::vector<RingAction> schedule =
        ring_schedule(1, world, {0, int64_t{6} * world * kS}, {.groups_ahead = 3});
    for (size_t i = 0; i + 1 < schedule.size(); ++i) {
      if (schedule[i].kind == RingAction::Kind::kReduce) {
        EXPECT_EQ(schedule[i + 1], (RingAction{RingAction::Kind::kPublish, schedule[i].range}));
      }
    }
  }
}

TEST_P(RingScheduleOf, HasNothingToDoForOneRankOrNoElements) {
  EXPECT_TRUE(ring_schedule(0, 1, {0, 100}, {}, GetParam()).empty());
  EXPECT_TRUE(ring_schedule(2, 4, {50, 50}, {}, GetParam()).empty());
}

TEST(RingSchedule, CutsALargeRangeOfTwoRanksAsTheTransportsLike) {
  constexpr int64_t large = 4 * kS;
  const RingPace pace{.groups_ahead = 2, .segment_elements = large};
  for (const Range range : {Range{0, 16 * kS}, Range{17, 29 * kS - 3}, Range{7 * kS, 40 * kS}}) {
    Simulation simulation(2, range, pace);
    simulation.run([&] { return simulation.ranks(); });
    simulation.expect_sums(range, large);
    int64_t largest = 0;
    for (const RingAction& action : ring_schedule(0, 2, range, pace)) {
      largest = std::max(largest, action.range.size());
    }
    EXPECT_EQ(largest, large);
  }
  const Range small = {0, 16 * kS - 1};
  EXPECT_EQ(ring_schedule(0, 2, small, pace), ring_schedule(0, 2, small, {.groups_ahead = 2}));
}

TEST(RingSchedule, KeepsTheOwnersOfShardsWhereTransportsLikeLargeSegments) {
  const RingPace pace{.groups_ahead = 2, .segment_elements = 4 * kS};
  for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    for (const Range range : {Range{0, 16 * kS}, Range{17, 29 * kS - 3}}) {
      Simulation simulation(2, range, pace, kind);
      simulation.run([&] { return simulation.ranks(); });
      simulation.expect_sums(range);
      for (const int rank : {0, 1}) {
        EXPECT_EQ(ring_schedule(rank, 2, range, pace, kind),
                  ring_schedule(rank, 2, range, {.groups_ahead = 2}, kind));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
