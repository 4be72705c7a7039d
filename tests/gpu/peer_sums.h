#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "comm/cuda/peer_all_reduce.h"
#include "comm/peer_table.h"
#include "comm/ring_schedule.h"
#include "core/device/buffer.h"
#include "support/mpi_environment.h"
#include "support/ring_inputs.h"

namespace lockstep {

inline constexpr int64_t kS = kSegmentElements;
inline constexpr int64_t kWindow = (16 << 20) + 3 * kS;

using Values = std::vector<float>;
using Input = float (*)(int rank, int64_t i);

inline int world() {
  return test_bootstrap().world_size();
}

inline Values inputs_of(int rank, Range range, Input input) {
  Values values;
  values.reserve(static_cast<size_t>(range.size()));
  for (int64_t i = range.begin; i < range.end; ++i) {
    values.push_back(input(rank, i));
  }
  return values;
}

/// What the ring leaves in the range on every rank, by walking the schedules of all of them.
inline Values ring_sums(Range range, Input input) {
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

/// A plan by name.
struct Way {
  std::string name;
  PeerPlan plan;
};

/// Sums over peer access between real processes by the plan of the parameter, with what it takes to
/// check them. The ranks share GPUs when there are fewer.
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
  void SetUp() override {
    if (GetParam().plan.algorithm == PeerAlgorithm::kCopies && world() != 2) {
      GTEST_SKIP() << "copies are for two ranks";
    }
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
      communicator_.emplace(test_bootstrap(), peers(), kWindow, WaitLimit{&words(), timeout_ns},
                            GetParam().plan.algorithm == PeerAlgorithm::kCopies);
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

}  // namespace lockstep
