// Sums over peer access between real processes, against the ring of the CPU bit by bit. Ranks share
// GPUs when there are fewer.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "peer_sums.h"

namespace lockstep {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Ways, PeerAllReduceBy,
    testing::Values(Way{"OneShot", {PeerAlgorithm::kOneShot, 1, 4}},
                    Way{"OneShotWide", {PeerAlgorithm::kOneShot, kMostPeerBlocks, 4}},
                    Way{"OneShotSmallMessages", {PeerAlgorithm::kOneShot, 16, 1}},
                    Way{"Pull", {PeerAlgorithm::kPull, 3}},
                    Way{"PullWide", {PeerAlgorithm::kPull, kMostPeerBlocks}},
                    Way{"Push", {PeerAlgorithm::kPush, 2}},
                    Way{"PushWide", {PeerAlgorithm::kPush, kMostPeerBlocks}},
                    Way{"Ring", {PeerAlgorithm::kRing, 5}},
                    Way{"RingWide", {PeerAlgorithm::kRing, kMostPeerBlocks}},
                    Way{"Copies", {PeerAlgorithm::kCopies}}),
    [](const auto& way) { return way.param.name; });

TEST_P(PeerAllReduceBy, AddsInTheOrderOfTheRing) {
  // Twice as many sums as it takes for the counts to come round to 0.
  for (int round = 0; round < 2; ++round) {
    for (const Range range : {Range{0, 1}, Range{1, 4}, Range{2, 5}, Range{7, 8}, Range{4, 8},
                              Range{3, 1003}, Range{kS - 1, kS + 1}, Range{5, 5 + 4097},
                              Range{0, 65537}, Range{0, 8 * kS}, Range{kS / 2 + 77, 9 * kS + 5}}) {
      fill(range, real_at);
      communicator().all_reduce(*stream_, range, 0);
      expect_ring_sums(range, real_at);
    }
  }
}

TEST_P(PeerAllReduceBy, SumsALargeRange) {
  for (const Range range : {Range{0, 16 << 20}, Range{3 * kS - 2, kWindow - 1}}) {
    fill(range, integer_at);
    communicator().all_reduce(*stream_, range, 0);
    expect_ring_sums(range, integer_at);
  }
}

TEST_P(PeerAllReduceBy, SumsAsManyMessagesAsThereAreSlotsAndMore) {
  // Of each warp, where one block sums.
  constexpr int64_t kElements = int64_t{kPeerWarps} * 32 * kMessagePacks * kPackElements;
  const int64_t slots = message_slots(world());
  for (int64_t messages = 1; messages <= 2 * slots + 2; ++messages) {
    const Range range{3, messages * kElements - 5};
    communicator().all_reduce(*stream_, range, 0);  // of whatever: the next one comes behind it
    fill(range, integer_at);
    communicator().all_reduce(*stream_, range, 1);
    expect_ring_sums(range, integer_at);
  }
}

TEST_P(PeerAllReduceBy, PassesOnEveryNan) {
  // All bits set: what a slot holds that waits for data.
  const Range range{5, 5 + 3000};
  const Values nans(static_cast<size_t>(range.size()), std::bit_cast<float>(0xffffffffU));
  set_window(range, rank_ == 1 ? nans : Values(nans.size(), 1.0F));
  communicator().all_reduce(*stream_, range, 0);
  const Values sums = window(range);
  EXPECT_TRUE(std::all_of(sums.begin(), sums.end(), [](float sum) { return std::isnan(sum); }));
}

TEST_P(PeerAllReduceBy, SumsAnewAtEachLaunchOfAGraph) {
  const Range first{3, 3 + 1000};
  const Range second{kS - 5, 3 * kS};
  static int round;  // an Input is a plain function
  const Input input = [](int rank, int64_t i) { return real_at(rank, i + 1000 * round); };
  const auto sum = [&] {
    communicator().all_reduce(*stream_, first, 0);
    communicator().all_reduce(*stream_, second, 1);
  };
  sum();
  CudaGraph graph(*stream_, sum);
  for (round = 0; round < 50; ++round) {
    fill(first, input);
    fill(second, input);
    graph.launch(*stream_);
    expect_ring_sums(first, input);
    expect_ring_sums(second, input);
  }
}

TEST_P(PeerAllReduceBy, ShowsItsTimeToTheHost) {
  communicator().all_reduce(*stream_, {0, 1 << 20}, 3);
  stream_->synchronize();
  const uint64_t first = words().busy_ns;
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 10'000'000'000);
  communicator().all_reduce(*stream_, {0, 1 << 20}, 3);
  stream_->synchronize();
  EXPECT_GT(words().busy_ns, first);
  EXPECT_EQ(words().bucket, -1);
}

TEST_P(PeerAllReduceBy, NamesARankThatDoesNotCome) {
  PeerAllReduce& late = communicator(300'000'000);
  const Range range{0, 100'000};
  fill(range, integer_at);
  stream_->synchronize();
  test_bootstrap().barrier();
  if (rank_ != 1) {
    late.all_reduce(*stream_, range, 7);
    late.all_reduce(*stream_, range, 8);
    stream_->synchronize();
    EXPECT_EQ(words().abort, 1);
    EXPECT_EQ(words().late_bucket, 7);
    if (world() == 2) {
      EXPECT_EQ(words().late_rank, 1);
    }
  }
  test_bootstrap().barrier();
  if (rank_ == 1) {
    EXPECT_EQ(window(range), inputs_of(rank_, range, integer_at)) << "written by who gave up";
  }
}

TEST_P(PeerAllReduceBy, NamesARankThatSumsSomethingElse) {
  PeerAllReduce& sums = communicator(3'000'000'000);
  stream_->synchronize();
  test_bootstrap().barrier();
  sums.all_reduce(*stream_, {0, rank_ == 1 ? 200'000 : 100'000}, 7);
  stream_->synchronize();
  EXPECT_EQ(words().abort, 1);
  EXPECT_EQ(words().late_bucket, 7);
  if (world() == 2) {
    EXPECT_EQ(words().disagrees, 1);
    EXPECT_EQ(words().late_rank, 1 - rank_);
  }
}

}  // namespace
}  // namespace lockstep
