// Rounds of several sums by copies between two ranks, bit by bit against the ring of the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "peer_sums.h"

namespace lockstep {
namespace {

class PeerRounds : public PeerAllReduceBy {
 protected:
  PeerAllReduce& pushing(uint64_t timeout_ns = 60'000'000'000) {
    PeerAllReduce& sums = communicator(timeout_ns);
    sums.force({PeerAlgorithm::kCopies});
    return sums;
  }
  void push(Range range, int bucket, SumLoad load = SumLoad::kBeside) {
    EXPECT_TRUE(pushing().push(*stream_, range, bucket, load));
  }
  void sum_by_kernel(Range range, int bucket) {
    communicator().force({PeerAlgorithm::kPull, 3});
    EXPECT_FALSE(communicator().push(*stream_, range, bucket, SumLoad::kBeside));
    communicator().all_reduce(*stream_, range, bucket, SumLoad::kBeside);
  }
  void finish() { communicator().finish(*stream_); }
};

INSTANTIATE_TEST_SUITE_P(Ways, PeerRounds, testing::Values(Way{"Copies", {PeerAlgorithm::kCopies}}),
                         [](const auto& way) { return way.param.name; });

TEST_P(PeerRounds, SumWithKernelsBetweenAtEachLaunchOfGraphs) {
  static int round;
  const Input input = [](int rank, int64_t i) { return real_at(rank, i + 1000 * round); };
  const Range whole{3, kWindow - 2};
  const Range small{9 * kS + 7, 9 * kS + 1010};
  const auto in_parts = [&] {
    push({small.end, 11 * kS + 1}, 0);
    sum_by_kernel(small, 1);
    push({9 * kS + 5, small.begin}, 2);
    push({11 * kS + 1, whole.end}, 3, SumLoad::kAlone);
    push({whole.begin, 9 * kS + 5}, 4, SumLoad::kAlone);
    finish();
  };
  const auto as_one = [&] {
    push(whole, 0);
    finish();
  };
  in_parts();
  as_one();
  std::vector<CudaGraph> graphs;
  graphs.emplace_back(*stream_, in_parts);
  graphs.emplace_back(*stream_, as_one);
  graphs.emplace_back(*stream_, in_parts);
  for (round = 0; round < 6; ++round) {
    fill(whole, input);
    graphs[static_cast<size_t>(round % 3)].launch(*stream_);
    expect_ring_sums(whole, input);
  }
}

TEST_P(PeerRounds, FollowEachOtherWithoutTheHost) {
  const Range range{2, (1 << 20) + 1};
  const auto rounds = [&] {
    for (int i = 0; i < 10; ++i) {
      push(range, i);
      push({range.end, range.end + 5}, 1);
      finish();
    }
  };
  rounds();
  CudaGraph graph(*stream_, rounds);
  // Each round doubles what both ranks have then.
  set_window(range, Values(static_cast<size_t>(range.size()), static_cast<float>(rank_)));
  graph.launch(*stream_);
  graph.launch(*stream_);
  EXPECT_EQ(window(range), Values(static_cast<size_t>(range.size()), std::ldexp(1.0F, 19)));
}

TEST_P(PeerRounds, LeaveTheirEndToTheirStream) {
  const Range pushed{3, (1 << 20) + 1};
  const Range beside{pushed.end, 3 << 20};
  fill({pushed.begin, beside.end}, real_at);
  push(pushed, 0);
  CudaEvent begun;
  begun.record(*stream_);
  CudaStream other;
  other.wait(begun);
  // By copies too, were it alone.
  communicator().all_reduce(other, beside, 1, SumLoad::kAlone);
  CudaEvent summed;
  summed.record(other);
  stream_->wait(summed);
  finish();
  expect_ring_sums({pushed.begin, beside.end}, real_at);
}

TEST_P(PeerRounds, RefuseHalvesUntilTheyAreFinished) {
  const Range range{3, 3 * kS};
  const Range beside{range.end, 5 * kS};
  fill(range, real_at);
  push(range, 0);
  EXPECT_THROW(communicator().reduce_scatter(*stream_, beside, 1), InternalError);
  EXPECT_THROW(communicator().all_gather(*stream_, beside, 1), InternalError);
  finish();
  expect_ring_sums(range, real_at);
  fill(beside, real_at);
  communicator().reduce_scatter(*stream_, beside, 1);
  communicator().all_gather(*stream_, beside, 2);
  expect_ring_sums(beside, real_at);
}

TEST_P(PeerRounds, MayHaveMoreSumsThanRoom) {
  const Range whole{1, 1 + 101 * 2 * kCopySlots};
  fill(whole, real_at);
  int pushed = 0;
  for (int64_t begin = whole.begin; begin < whole.end; begin += 101) {
    const Range range{begin, begin + 101};
    if (pushing().push(*stream_, range, 0, SumLoad::kBeside)) {
      ++pushed;
    } else {
      pushing().all_reduce(*stream_, range, 0, SumLoad::kBeside);
    }
  }
  finish();
  EXPECT_EQ(pushed, kCopySlots - kMostPieces + 1);
  expect_ring_sums(whole, real_at);
}

TEST_P(PeerRounds, EndWhenTheOtherRankStaysInTheOneBefore) {
  const Range range{0, 100'000};
  pushing(300'000'000);
  stream_->synchronize();
  test_bootstrap().barrier();
  push(range, 7);
  if (rank_ == 0) {
    finish();
    push(range, 8);
    finish();
    stream_->synchronize();
    EXPECT_EQ(words().abort, 1);
    EXPECT_EQ(words().late_bucket, 8);
    EXPECT_EQ(words().late_rank, 1);
  }
  stream_->synchronize();
  test_bootstrap().barrier();
  if (rank_ == 1) {
    // What the other sent last may lie over what is added now: it is no sum.
    finish();
    stream_->synchronize();
    EXPECT_EQ(words().abort, 1);
    EXPECT_EQ(words().late_rank, 0);
  }
}

}  // namespace
}  // namespace lockstep
