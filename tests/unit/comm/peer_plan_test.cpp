#include "comm/cuda/peer_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/arena_shard.h"

namespace lockstep {
namespace {

constexpr PeerAlgorithm kAll[] = {PeerAlgorithm::kOneShot, PeerAlgorithm::kPull,
                                  PeerAlgorithm::kPush, PeerAlgorithm::kRing,
                                  PeerAlgorithm::kCopies};

void expect_runnable(const PeerPlan& plan) {
  EXPECT_GE(plan.blocks, 1);
  EXPECT_LE(plan.blocks, kMostPeerBlocks);
  EXPECT_TRUE(plan.message_packs == 1 || plan.message_packs == 2 || plan.message_packs == 4);
}

TEST(PeerPlan, RunsEverySizeOnAnyNumberOfRanks) {
  for (int ranks = 2; ranks <= kMostPeerRanks; ++ranks) {
    for (int64_t bytes = 4; bytes <= int64_t{8} << 30; bytes = bytes * 3 / 2 + 4) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, " << ranks << " ranks");
      for (const SumLoad load : {SumLoad::kAlone, SumLoad::kBeside}) {
        expect_runnable(plan_peer_all_reduce(ranks, bytes, load));
        for (const PeerAlgorithm algorithm : kAll) {
          const PeerPlan forced = plan_peer_all_reduce(ranks, bytes, load, algorithm);
          EXPECT_EQ(forced.algorithm, algorithm);
          expect_runnable(forced);
        }
      }
    }
  }
}

TEST(PeerPlan, LeavesMostOfTheGpuToWhatItComputes) {
  for (int ranks = 2; ranks <= kMostPeerRanks; ++ranks) {
    for (int64_t bytes = 4; bytes <= int64_t{1} << 30; bytes *= 4) {
      EXPECT_LE(plan_peer_all_reduce(ranks, bytes, SumLoad::kBeside).blocks, 16);
    }
  }
}

TEST(PeerPlan, TakesOneTripForTheSmallest) {
  for (int ranks = 2; ranks <= kMostPeerRanks; ++ranks) {
    EXPECT_EQ(plan_peer_all_reduce(ranks, 4).algorithm, PeerAlgorithm::kOneShot);
    // Everyone is sent everything: too much of a large range for many.
    EXPECT_TRUE(ranks == 2 ||
                plan_peer_all_reduce(ranks, 1 << 30).algorithm != PeerAlgorithm::kOneShot);
  }
}

TEST(PeerPlan, CopiesWhatIsLargeBesideOtherWorkIfAsked) {
  const int64_t large = 64 << 20;
  EXPECT_TRUE(worth_copying(large, SumLoad::kBeside));
  EXPECT_FALSE(worth_copying(1 << 20, SumLoad::kBeside));
  EXPECT_FALSE(worth_copying(large, SumLoad::kAlone));
  // They take memory that nobody has asked for.
  EXPECT_NE(plan_peer_all_reduce(2, large, SumLoad::kBeside).algorithm, PeerAlgorithm::kCopies);
}

TEST(PeerPlan, TakesBlocksForTheLargestShard) {
  constexpr int64_t kS = kSegmentElements;
  const auto alone = [](int ranks, Range range) {
    return peer_shard_blocks(ranks, range, SumLoad::kAlone);
  };
  EXPECT_EQ(alone(2, {0, 1}), 1);
  EXPECT_EQ(alone(2, {5, kS}), 3);
  EXPECT_EQ(alone(2, {0, kS}), 4);
  EXPECT_EQ(alone(2, {0, 2 * kS}), 4);
  EXPECT_EQ(alone(2, {kS / 2, 3 * kS / 2}), 2);
  EXPECT_EQ(alone(2, {kS, 4 * kS}), 8);
  EXPECT_EQ(alone(3, {kS, 4 * kS}), 4);
  for (int ranks = 2; ranks <= kMostPeerRanks; ++ranks) {
    const Range large{3, 3 + (int64_t{1} << 31)};
    EXPECT_EQ(alone(ranks, large), kMostPeerBlocks);
    EXPECT_EQ(peer_shard_blocks(ranks, large, SumLoad::kBeside), 16);
  }
}

TEST(PeerPlan, HasAWordForEachAlgorithm) {
  std::set<PeerAlgorithm> found;
  for (const std::string& word : kPeerAlgorithmWords) {
    if (const auto algorithm = peer_algorithm(word)) {
      found.insert(*algorithm);
    } else {
      EXPECT_EQ(word, "auto");
    }
  }
  EXPECT_EQ(found, std::set<PeerAlgorithm>(std::begin(kAll), std::end(kAll)));
  EXPECT_EQ(peer_algorithm("one-shot"), PeerAlgorithm::kOneShot);
  EXPECT_EQ(peer_algorithm("ring"), PeerAlgorithm::kRing);
  EXPECT_EQ(peer_algorithm("tree"), std::nullopt);
}

}  // namespace
}  // namespace lockstep
