#include "comm/ring_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "unit/comm/ring_of_threads.h"

namespace lockstep {
namespace {

TEST(DivideAmongLanes, CoversTheRangeInOrderAtMultiplesOfTheUnit) {
  for (const Range range : {Range{0, 1}, Range{5, 5 + 3 * kS}, Range{0, 40 * kS},
                            Range{77, 77 + 200 * kS}, Range{3 * kS, 1000 * kS + 9}}) {
    for (int lanes = 1; lanes <= kMostRingLanes; ++lanes) {
      const std::vector<Range> parts = divide_among_lanes(range, lanes, 3 * kS);
      ASSERT_LE(parts.size(), static_cast<size_t>(lanes));
      EXPECT_EQ(parts.front().begin, range.begin);
      EXPECT_EQ(parts.back().end, range.end);
      for (size_t i = 1; i < parts.size(); ++i) {
        EXPECT_FALSE(parts[i].empty());
        EXPECT_EQ(parts[i].begin, parts[i - 1].end);
        EXPECT_EQ(parts[i].begin % (3 * kS), 0);
      }
    }
  }
  EXPECT_EQ(divide_among_lanes({0, 320 * kS}, 4, kS).size(), 4U);
  EXPECT_EQ(divide_among_lanes({0, kS}, 4, kS).size(), 1U);
}

/// Runs `body` with all lanes of every rank of a ring of threads.
void run_lanes(const RingSetup& setup,
               const std::function<void(int rank, RingLanes&, CpuView<float> window)>& body) {
  connect_threads(setup, [&](const RingOptions& options, RingLinks links) {
    RingLanes lanes(options, std::move(links.lanes), kNoAbort);
    body(options.rank, lanes, links.window);
  });
}

/// What three lanes beside each other make of ranges of every size.
class RingLanesOver : public testing::TestWithParam<Links> {};

TEST_P(RingLanesOver, SumExactlyInEveryRound) {
  for (int world = 2; world <= 3; ++world) {
    RingSetup setup = {world, GetParam(), 60 * kS + 100};
    setup.lanes = 3;
    run_lanes(setup, [&](int rank, RingLanes& lanes, CpuView<float> window) {
      for (const Range range :
           {Range{0, window.size()}, Range{7, 8}, Range{kS + 3, 50 * kS}, Range{0, 33 * kS}}) {
        fill_integers(rank, range, window);
        lanes.run(range, 4);
        lanes.drain();
        expect_integer_sums(world, range, window);
      }
    });
  }
}

TEST_P(RingLanesOver, KeepTheOwnersOfShards) {
  for (int world = 2; world <= 3; ++world) {
    RingSetup setup = {world, GetParam(), 60 * kS + 100};
    setup.lanes = 3;
    run_lanes(setup, [&](int rank, RingLanes& lanes, CpuView<float> window) {
      for (const Range range :
           {Range{0, window.size()}, Range{7, 8}, Range{kS + 3, 50 * kS}, Range{0, 33 * kS}}) {
        fill_integers(rank, range, window);
        lanes.run(range, 4, CollectiveKind::kReduceScatter);
        lanes.drain();
        expect_own_integer_sums(rank, world, range, window);
        fill_with_bits(rank, window);
        lanes.run(range, 4, CollectiveKind::kAllGather);
        lanes.drain();
        expect_owners_bits(rank, world, range, window);
      }
    });
  }
}

TEST_P(RingLanesOver, EndWhenTheSumsDiffer) {
  RingSetup setup = {2, GetParam(), 60 * kS, std::chrono::milliseconds(300)};
  setup.lanes = 3;
  EXPECT_THROW(run_lanes(setup,
                         [](int rank, RingLanes& lanes, CpuView<float> window) {
                           lanes.run({0, window.size() - rank}, 0);
                         }),
               Error);
}

INSTANTIATE_TEST_SUITE_P(All, RingLanesOver,
                         testing::Values(Links::kShm, Links::kSocket, Links::kMixed));

}  // namespace
}  // namespace lockstep
