// Sums over peer access between real processes, against the ring of the CPU bit by bit. Ranks share
// GPUs when there are fewer.
#include "comm/cuda/peer_all_reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "comm/peer_table.h"
#include "comm/ring_schedule.h"
#include "core/device/buffer.h"
#include "support/mpi_environment.h"
#include "support/ring_inputs.h"

namespace lockstep {

namespace {

constexpr int64_t kS = kSegmentElements;
constexpr int64_t kWindow = (16 << 20) + 3 * kS;

using Values = std::vector<float>;
using Input = float (*)(int rank, int64_t i);

int world() {
  return test_bootstrap().world_size();
}

Values inputs_of(int rank, Range range, Input input) {
  Values values;
  values.reserve(static_cast<size_t>(range.size()));
  for (int64_t i = range.begin; i < range.end; ++i) {
    values.push_back(input(rank, i));
  }
  return values;
}

/// What the ring leaves in the range on every rank, by walking the schedules of all of them.
Values ring_sums(Range range, Input input) {
  struct Rank {
    std::vector<RingAction> schedule;
    size_t next = 0;
    Values values;
    std::deque<Values> published;
  };
  std::vector<Rank> ranks;
  ranks.reserve(static_cast<size_t>(world()));
  for (int rank = 0; rank < world(); ++rank) {
    ranks.push_back(
        {ring_schedule(rank, world(), range, {}), 0, inputs_of(rank, range, input), {}});
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < ranks.size(); ++r) {
      Rank& self = ranks[r];
      Rank& before = ranks[(r + ranks.size() - 1) % ranks.size()];
      for (; self.next < self.schedule.size(); ++self.next, moved = true) {
        const RingAction action = self.schedule[self.next];
        float* mine = self.values.data() + (action.range.begin - range.begin);
        if (action.kind == RingAction::Kind::kPublish) {
          self.published.emplace_back(mine, mine + action.range.size());
          continue;
        }
        if (before.published.empty()) {
          break;
        }
        const bool reduce = action.kind == RingAction::Kind::kReduce;
        for (const float theirs : before.published.front()) {
          *mine = reduce ? *mine + theirs : theirs;
          ++mine;
        }
        before.published.pop_front();
      }
    }
  }
  return ranks[0].values;
}

struct Way {
  std::string name;
  PeerPlan plan;
};

class PeerAllReduceBy : public testing::TestWithParam<Way> {
 public:
  PeerAllReduceBy(const PeerAllReduceBy&) = delete;
  PeerAllReduceBy& operator=(const PeerAllReduceBy&) = delete;
  PeerAllReduceBy(PeerAllReduceBy&&) = delete;
  PeerAllReduceBy& operator=(PeerAllReduceBy&&) = delete;

 protected:
  PeerAllReduceBy() {
    use_cuda_device(peers()[static_cast<size_t>(rank_)].local_rank % cuda_device_count());
    stream_.emplace();
    words_ = Buffer<CudaHost, CollectiveWords>(1);
    *words_.view().data() = CollectiveWords{};
  }
  ~PeerAllReduceBy() override {
    stream_->synchronize();
    if (communicator_) {
      communicator_->leave(test_bootstrap(), [] { return false; });
    }
  }

  static const PeerTable& peers() {
    static const PeerTable table = gather_peer_table(test_bootstrap());
    return table;
  }

  CollectiveWords& words() { return *words_.view().data(); }

  PeerAllReduce& communicator(uint64_t timeout_ns = 60'000'000'000) {
    if (!communicator_) {
      communicator_.emplace(test_bootstrap(), peers(), kWindow, WaitLimit{&words(), timeout_ns});
      communicator_->force(GetParam().plan);
    }
    return *communicator_;
  }

  void set_window(Range range, const Values& values) {
    copy_from_host(*stream_, communicator().window().subview(range), values.data());
  }
  Values window(Range range) {
    Values values(static_cast<size_t>(range.size()));
    copy_to_host(*stream_, values.data(),
                 CudaView<const float>(communicator().window().subview(range)));
    stream_->synchronize();
    return values;
  }

  /// The window's part around the range, with what a rank puts in and poison beside it.
  void fill(Range range, Input input) {
    const Range around = around_of(range);
    Values values(static_cast<size_t>(around.size()), kPoison);
    const Values inside = inputs_of(rank_, range, input);
    std::copy(inside.begin(), inside.end(), values.begin() + (range.begin - around.begin));
    set_window(around, values);
  }
  void expect_ring_sums(Range range, Input input) {
    const Range around = around_of(range);
    Values expected(static_cast<size_t>(around.size()), kPoison);
    const Values inside = ring_sums(range, input);
    std::copy(inside.begin(), inside.end(), expected.begin() + (range.begin - around.begin));
    const Values got = window(around);
    int64_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(expected[i]) && ++wrong == 1) {
        ADD_FAILURE() << "element " << around.begin + static_cast<int64_t>(i) << " is " << got[i]
                      << " and not " << expected[i];
      }
    }
    EXPECT_EQ(wrong, 0) << "elements of [" << range.begin << ", " << range.end << ")";
  }

  static constexpr float kPoison = -12345.678F;
  static Range around_of(Range range) {
    return {std::max<int64_t>(0, range.begin - 9), std::min(kWindow, range.end + 9)};
  }

  int rank_ = test_bootstrap().rank();
  std::optional<CudaStream> stream_;

 private:
  Buffer<CudaHost, CollectiveWords> words_;
  std::optional<PeerAllReduce> communicator_;
};

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
                    Way{"RingWide", {PeerAlgorithm::kRing, kMostPeerBlocks}}),
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
