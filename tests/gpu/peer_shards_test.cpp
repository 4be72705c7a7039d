// Reduce-scatter and all-gather over peer access between real processes: the bits of the ring of
// the CPU at the owners, and the owners' bits at everyone. Ranks share GPUs when there are fewer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/arena_shard.h"
#include "core/base/random.h"
#include "peer_sums.h"

namespace lockstep {
namespace {

constexpr SumLoad kLoads[] = {SumLoad::kAlone, SumLoad::kBeside};
constexpr Range kRanges[] = {{0, 1},
                             {1, 4},
                             {2, 5},
                             {7, 8},
                             {4, 8},
                             {3, 1003},
                             {kS - 1, kS + 1},
                             {kS + 2, 2 * kS - 3},
                             {5, 5 + 4097},
                             {0, 65537},
                             {0, 8 * kS},
                             {2 * kS, 3 * kS + 6},
                             {kS / 2 + 77, 9 * kS + 5}};

bool same_bits(const Values& a, const Values& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Every kind of float: zeros of both signs, infinities, NaNs that carry bits, quiet ones and
/// others, the one that slots of channels wait with, and whatever bits there are.
float bits_at(int rank, int64_t i) {
  const auto word =
      static_cast<uint32_t>(random_bits(5, static_cast<uint64_t>(rank), static_cast<uint64_t>(i)));
  const std::array<uint32_t, 8> kinds = {0,
                                         0x80000000U,
                                         0xff800000U,
                                         0x7f800000U | (word >> 10U | 1U),
                                         0xffc00000U | word >> 10U,
                                         0xffffffffU,
                                         word >> 9U,
                                         word};
  return std::bit_cast<float>(kinds[static_cast<size_t>((i + rank) % 8)]);
}

float from_owner(int /*rank*/, int64_t i) {
  return bits_at(static_cast<int>(i / kS % world()), i);
}

/// The parameter says what whole sums are by; their halves have one way each.
class PeerShards : public PeerAllReduceBy {
 protected:
  using Call = void (PeerAllReduce::*)(CudaStream&, Range, int, SumLoad);

  /// The range and some of what lies around it, with the inputs and poison beside them.
  static Values with_poison(Range range, const Values& inside) {
    const Range around = around_of(range);
    Values values(static_cast<size_t>(around.size()), kPoison);
    std::copy(inside.begin(), inside.end(), values.begin() + (range.begin - around.begin));
    return values;
  }

  /// The window around the range is as `expected` with poison beside it, but for those elements of
  /// the range that this rank does not own.
  void expect_owned(Range range, Values expected) {
    const Range around = around_of(range);
    const ArenaShard shard{rank_, world()};
    expected = with_poison(range, expected);
    Values got = window(around);
    for (int64_t i = range.begin; i < range.end; ++i) {
      if (!shard.owns(i)) {
        const auto at = static_cast<size_t>(i - around.begin);
        got[at] = expected[at];
      }
    }
    EXPECT_TRUE(same_bits(got, expected)) << "[" << range.begin << ", " << range.end << ")";
  }

  void reduce_scatter(Range range, int bucket, SumLoad load = SumLoad::kAlone) {
    communicator().reduce_scatter(*stream_, range, bucket, load);
  }
  void all_gather(Range range, int bucket, SumLoad load = SumLoad::kAlone) {
    communicator().all_gather(*stream_, range, bucket, load);
  }
  void all_reduce(Range range, int bucket) { communicator().all_reduce(*stream_, range, bucket); }

  /// Rank 1 does not come to `first`, and the others go on to `second`.
  void expect_late(Call first, Call second) {
    PeerAllReduce& late = communicator(300'000'000);
    const Range range{0, 100'000};
    fill(range, integer_at);
    stream_->synchronize();
    test_bootstrap().barrier();
    if (rank_ != 1) {
      (late.*first)(*stream_, range, 7, SumLoad::kAlone);
      (late.*second)(*stream_, range, 8, SumLoad::kAlone);
      stream_->synchronize();
      EXPECT_EQ(words().abort, 1);
      EXPECT_EQ(words().late_bucket, 7);
      if (world() == 2) {
        EXPECT_EQ(words().late_rank, 1);
      }
    }
    test_bootstrap().barrier();
    EXPECT_EQ(window(range), inputs_of(rank_, range, integer_at)) << "written after all";
  }

  /// Rank 1 calls another collective than the others, of the same range and bucket.
  void expect_told(Call of_rank_1, Call of_others) {
    PeerAllReduce& sums = communicator(3'000'000'000);
    stream_->synchronize();
    test_bootstrap().barrier();
    (sums.*(rank_ == 1 ? of_rank_1 : of_others))(*stream_, {0, 100'000}, 7, SumLoad::kAlone);
    stream_->synchronize();
    EXPECT_EQ(words().abort, 1);
    EXPECT_EQ(words().late_bucket, 7);
    if (world() == 2) {
      EXPECT_EQ(words().disagrees, 1);
      EXPECT_EQ(words().late_rank, 1 - rank_);
    }
  }
};

const Way kPull{"Pull", {PeerAlgorithm::kPull, 3}};
const Way kOneShot{"OneShot", {PeerAlgorithm::kOneShot, 16, 1}};
const Way kPush{"PushWide", {PeerAlgorithm::kPush, kMostPeerBlocks}};
const Way kRing{"Ring", {PeerAlgorithm::kRing, 5}};
const Way kCopies{"Copies", {PeerAlgorithm::kCopies}};

std::string name_of(const testing::TestParamInfo<Way>& way) {
  return way.param.name;
}

INSTANTIATE_TEST_SUITE_P(Ways, PeerShards, testing::Values(kPull), name_of);

/// Those between whole sums.
class PeerShardsAndSums : public PeerShards {};
INSTANTIATE_TEST_SUITE_P(Ways, PeerShardsAndSums,
                         testing::Values(kPull, kOneShot, kPush, kRing, kCopies), name_of);

/// And where sums are kernels too: who is at a kernel cannot tell that the other one copies.
class PeerShardsOrSums : public PeerShards {};
INSTANTIATE_TEST_SUITE_P(Ways, PeerShardsOrSums, testing::Values(kPull, kOneShot, kPush, kRing),
                         name_of);

TEST_P(PeerShards, LeaveTheSumOfTheRingAtItsOwner) {
  for (const SumLoad load : kLoads) {
    for (const Range range : kRanges) {
      for (const Input input : {integer_at, real_at}) {
        fill(range, input);
        reduce_scatter(range, 0, load);
        expect_owned(range, ring_sums(range, input));
      }
    }
  }
}

TEST_P(PeerShards, HaveTheBitsOfTheOwnerAtEveryone) {
  for (const SumLoad load : kLoads) {
    for (const Range range : kRanges) {
      fill(range, bits_at);
      all_gather(range, 0, load);
      EXPECT_TRUE(same_bits(window(around_of(range)),
                            with_poison(range, inputs_of(rank_, range, from_owner))))
          << "[" << range.begin << ", " << range.end << ")";
    }
  }
}

TEST_P(PeerShards, MakeTheWholeSumTogether) {
  for (const Range range : kRanges) {
    fill(range, real_at);
    reduce_scatter(range, 0);
    all_gather(range, 1);
    expect_ring_sums(range, real_at);
  }
}

TEST_P(PeerShardsAndSums, HaveTheSameBitsOfALargeRange) {
  const Range range{3 * kS - 2, (4 << 20) + 1};
  fill(range, real_at);
  all_reduce(range, 0);
  const Values sums = window(range);
  for (const SumLoad load : kLoads) {
    fill(range, real_at);
    reduce_scatter(range, 1, load);
    expect_owned(range, sums);
    all_gather(range, 2, load);
    EXPECT_TRUE(same_bits(window(around_of(range)), with_poison(range, sums)));
  }
}

TEST_P(PeerShardsAndSums, FollowEachOtherWithoutTheHost) {
  static int launch;
  const Input input = [](int rank, int64_t i) {
    return static_cast<float>((rank + 1) * ((i + launch) % 13 + 1));
  };
  const Range range{3, 11 * kS + 78};
  const Range part{kS + 2, 5 * kS + 1};
  const Range rest{part.end, range.end};
  constexpr int kSums = 7;  // each but the first of what is the same at everyone
  const auto sums = [&] {
    for (int i = 0; i < kSums; ++i) {
      if (i % 2 == 0) {
        reduce_scatter(part, i, SumLoad::kBeside);
        reduce_scatter({range.begin, part.begin}, i);
        reduce_scatter(rest, i);
        all_gather(range, i);
      } else {
        all_reduce(range, i);
      }
    }
  };
  sums();
  CudaGraph graph(*stream_, sums);
  for (launch = 0; launch < 10; ++launch) {
    fill(range, input);
    graph.launch(*stream_);
    Values expected;
    for (int64_t i = range.begin; i < range.end; ++i) {
      float sum = 0;
      for (int rank = 0; rank < world(); ++rank) {
        sum += input(rank, i);
      }
      for (int again = 1; again < kSums; ++again) {
        sum *= static_cast<float>(world());
      }
      expected.push_back(sum);
    }
    EXPECT_TRUE(same_bits(window(around_of(range)), with_poison(range, expected)))
        << "launch " << launch;
  }
}

TEST_P(PeerShards, SumAnewAtEachLaunchOfAGraph) {
  const Range first{3, 3 + 1000};
  const Range second{kS - 5, 7 * kS};
  static int round;  // an Input is a plain function
  const Input input = [](int rank, int64_t i) { return real_at(rank, i + 1000 * round); };
  const auto sum = [&] {
    reduce_scatter(first, 0);
    reduce_scatter(second, 1);
    all_gather(second, 2);
    all_gather(first, 3);
  };
  sum();
  CudaGraph graph(*stream_, sum);
  for (round = 0; round < 20; ++round) {
    fill(first, input);
    fill(second, input);
    graph.launch(*stream_);
    expect_ring_sums(first, input);
    expect_ring_sums(second, input);
  }
}

TEST_P(PeerShards, ShowTheirTimeToTheHost) {
  reduce_scatter({0, 1 << 20}, 3);
  stream_->synchronize();
  const uint64_t first = words().busy_ns;
  EXPECT_GT(first, 0);
  all_gather({0, 1 << 20}, 3);
  stream_->synchronize();
  EXPECT_GT(words().busy_ns, first);
  EXPECT_EQ(words().bucket, -1);
}

TEST_P(PeerShards, NameARankThatDoesNotComeToAReduceScatter) {
  expect_late(&PeerAllReduce::reduce_scatter, &PeerAllReduce::all_gather);
}

TEST_P(PeerShards, NameARankThatDoesNotComeToAnAllGather) {
  expect_late(&PeerAllReduce::all_gather, &PeerAllReduce::reduce_scatter);
}

TEST_P(PeerShardsOrSums, TellAReduceScatterFromAnAllReduce) {
  expect_told(&PeerAllReduce::reduce_scatter, &PeerAllReduce::all_reduce);
}

TEST_P(PeerShardsOrSums, TellAnAllGatherFromAnAllReduce) {
  expect_told(&PeerAllReduce::all_reduce, &PeerAllReduce::all_gather);
}

TEST_P(PeerShardsOrSums, TellAnAllGatherFromAReduceScatter) {
  expect_told(&PeerAllReduce::all_gather, &PeerAllReduce::reduce_scatter);
}

}  // namespace
}  // namespace lockstep
