#include "comm/ring_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace lockstep {
namespace {

constexpr int64_t kS = kSegmentElements;

/// All ranks of one all-reduce, each at some point of its schedule. An element's value is the list
/// of the ranks that were added up to make it, in order.
class Simulation {
 public:
  Simulation(int world, Range range, const RingPace& pace) {
    for (int rank = 0; rank < world; ++rank) {
      ranks_.push_back({ring_schedule(rank, world, range, pace), 0, {}, {}});
      Rank& self = ranks_.back();
      for (const RingAction& action : self.schedule) {
        self.parts[action.range.begin] = {action.range, {rank}, 0};
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

  void expect_sums(Range range, int64_t segment = kS) const {
    const int world = static_cast<int>(ranks_.size());
    for (const Rank& rank : ranks_) {
      EXPECT_EQ(rank.next, rank.schedule.size()) << "a rank waits for ever";
      EXPECT_TRUE(rank.published.empty()) << "data that nobody consumed";
      int64_t position = range.begin;
      for (const auto& [begin, part] : rank.parts) {
        EXPECT_EQ(begin, position);
        position = part.range.end;
        std::vector<int> order;
        for (int hop = 1; hop <= world; ++hop) {
          order.push_back(static_cast<int>((begin / segment + hop) % world));
        }
        EXPECT_EQ(part.value, order) << "sum of the segment at " << begin;
      }
      EXPECT_EQ(position, world == 1 ? range.begin : range.end);
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

TEST(RingSchedule, GivesEveryElementEveryRankOnceInTheOrderOfItsPosition) {
  std::mt19937 generator(7);
  for (int world = 1; world <= 9; ++world) {
    for (const Range range : kRanges) {
      for (const int64_t ahead : {0, 1, 2, 5}) {
        SCOPED_TRACE(testing::Message() << world << " ranks, [" << range.begin << ", " << range.end
                                        << "), " << ahead << " groups ahead");
        const RingPace pace{.groups_ahead = ahead};
        Simulation first_rank_first(world, range, pace);
        first_rank_first.run([&] { return first_rank_first.ranks(); });
        first_rank_first.expect_sums(range);
        Simulation any_order(world, range, pace);
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

TEST(RingSchedule, SendsTheLeastThatARingCan) {
  for (int world = 2; world <= 9; ++world) {
    const Range range = {int64_t{world} * kS, int64_t{4} * world * kS};
    const Simulation simulation(world, range, {.groups_ahead = 2});
    for (const size_t rank : simulation.ranks()) {
      EXPECT_EQ(simulation.elements_sent(rank) * world, 2 * (int64_t{world} - 1) * range.size());
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

TEST(RingSchedule, HasNothingToDoForOneRankOrNoElements) {
  EXPECT_TRUE(ring_schedule(0, 1, {0, 100}, {}).empty());
  EXPECT_TRUE(ring_schedule(2, 4, {50, 50}, {}).empty());
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

}  // namespace
}  // namespace lockstep
