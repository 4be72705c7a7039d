#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "comm/abort_source.h"
#include "comm/ring_executor.h"
#include "comm/ring_links.h"
#include "comm/ring_schedule.h"
#include "core/base/arena_shard.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "support/ring_inputs.h"
#include "support/thread_bootstrap.h"
#include "support/unmappable_bootstrap.h"

namespace lockstep {

inline constexpr int64_t kS = kSegmentElements;

/// The abort of a group of threads, in place of the control plane.
class TestAbort final : public AbortSource {
 public:
  void abort() { aborted_ = true; }
  bool aborted() const noexcept override { return aborted_; }
  void throw_if_aborted() const override {
    if (aborted_) {
      throw AbortedError(ExitCode::kPeerLost, "the cause elsewhere");
    }
  }
  void await_cause() const override { throw_if_aborted(); }

 private:
  std::atomic<bool> aborted_{false};
};

inline const TestAbort kNoAbort;

enum class Links { kShm, kSocket, kMixed };

struct RingSetup {
  int world = 2;
  Links links = Links::kShm;
  int64_t elements = 0;
  std::chrono::milliseconds timeout{20000};
  std::function<std::unique_ptr<SendEdge>(int rank, std::unique_ptr<SendEdge>)> wrap{};
  int lanes = 1;
  bool slow = false;  ///< every rank takes its time before it takes what was published
};

/// A receiving end that lets the sender run ahead.
class SlowRecvEdge final : public RecvEdge {
 public:
  explicit SlowRecvEdge(std::unique_ptr<RecvEdge> edge) : edge_(std::move(edge)) {}

  bool try_begin(CollectiveHeader* header) override { return edge_->try_begin(header); }
  bool try_reduce(Range range) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return edge_->try_reduce(range);
  }
  bool try_copy(Range range) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return edge_->try_copy(range);
  }
  void end() override { edge_->end(); }
  Readiness readiness() const override { return edge_->readiness(); }
  void sleep(std::chrono::microseconds limit) override { edge_->sleep(limit); }

 private:
  std::unique_ptr<RecvEdge> edge_;
};

/// Calls `use` with the options and the links of every rank of a ring of threads.
inline void connect_threads(const RingSetup& setup,
                            const std::function<void(const RingOptions&, RingLinks)>& use) {
  run_ranks(setup.world, [&](Bootstrap& bootstrap) {
    const PeerTable peers = gather_peer_table(bootstrap);
    UnmappableBootstrap unmappable(bootstrap);
    CommunicatorOptions options;
    options.window_elements = setup.elements;
    options.transport =
        setup.links == Links::kSocket ? TransportChoice::kSocket : TransportChoice::kAuto;
    options.ring_lanes = setup.lanes;
    RingLinks links =
        connect_ring(setup.links == Links::kMixed ? unmappable : bootstrap, peers, options);
    const std::array names = {"shm", "socket", "shm+socket"};
    ASSERT_EQ(links.name, names[static_cast<size_t>(setup.links)]);
    RingOptions ring;
    ring.rank = bootstrap.rank();
    ring.world_size = bootstrap.world_size();
    ring.timeout = setup.timeout;
    ring.pace = links.pace;
    for (RingEdges& edges : links.lanes) {
      if (setup.wrap) {
        edges.send = setup.wrap(ring.rank, std::move(edges.send));
      }
      if (setup.slow) {
        edges.recv = std::make_unique<SlowRecvEdge>(std::move(edges.recv));
      }
    }
    use(ring, std::move(links));
  });
}

using Body = std::function<void(int rank, RingExecutor&, CpuView<float> window)>;

/// Runs `body` on every rank of a ring of threads.
inline void run_ring(const RingSetup& setup, const AbortSource& abort, const Body& body) {
  connect_threads(setup, [&](const RingOptions& options, RingLinks links) {
    RingEdges& edges = links.lanes.front();
    RingExecutor executor(options, std::move(edges.send), std::move(edges.recv), abort);
    body(options.rank, executor, links.window);
  });
}

/// What a rank puts into a range; around it nothing may change.
inline void fill_integers(int rank, Range range, CpuView<float> window) {
  std::fill(window.begin(), window.end(), -1.0F);
  for (int64_t i = range.begin; i < range.end; ++i) {
    window[i] = integer_at(rank, i);
  }
}

/// What every rank puts into element i sums to, whatever the order.
inline float integer_sum_at(int world, int64_t i) {
  float sum = 0;
  for (int rank = 0; rank < world; ++rank) {
    sum += integer_at(rank, i);
  }
  return sum;
}

inline void expect_integer_sums(int world, Range range, CpuView<float> window) {
  for (int64_t i = 0; i < window.size(); ++i) {
    const bool inside = i >= range.begin && i < range.end;
    const float expected = inside ? integer_sum_at(world, i) : -1;  // untouched outside
    ASSERT_EQ(window[i], expected) << "element " << i << " of [" << range.begin << ", " << range.end
                                   << ") and " << world << " ranks";
  }
}

/// As expect_integer_sums, of the elements that `rank` owns and of those outside the range.
inline void expect_own_integer_sums(int rank, int world, Range range, CpuView<float> window) {
  const ArenaShard own = {rank, world};
  for (int64_t i = 0; i < window.size(); ++i) {
    const bool inside = i >= range.begin && i < range.end;
    if (!inside || own.owns(i)) {
      ASSERT_EQ(window[i], inside ? integer_sum_at(world, i) : -1)
          << "element " << i << " of [" << range.begin << ", " << range.end << ") at rank " << rank
          << " of " << world;
    }
  }
}

/// Bits of element i that an addition would not leave as they are: both zeros, NaNs with something
/// in them, and numbers.
inline uint32_t bits_at(int rank, int64_t i) {
  const uint64_t random = random_bits(5, static_cast<uint64_t>(rank), static_cast<uint64_t>(i));
  const auto low = static_cast<uint32_t>(random);
  switch (random >> 62) {
    case 0:
      return low & 0x80000000U;
    case 1:
      return low | 0x7f800001U;
    default:
      return low;
  }
}

inline void fill_with_bits(int rank, CpuView<float> window) {
  for (int64_t i = 0; i < window.size(); ++i) {
    const uint32_t bits = bits_at(rank, i);
    std::memcpy(&window[i], &bits, sizeof(bits));
  }
}

/// In the range the bits of each element's owner, outside it those that `rank` put there.
inline void expect_owners_bits(int rank, int world, Range range, CpuView<float> window) {
  for (int64_t i = 0; i < window.size(); ++i) {
    const bool inside = i >= range.begin && i < range.end;
    const auto owner = static_cast<int>(i / kS % world);
    uint32_t bits = 0;
    std::memcpy(&bits, &window[i], sizeof(bits));
    ASSERT_EQ(bits, bits_at(inside ? owner : rank, i))
        << "element " << i << " of [" << range.begin << ", " << range.end << ") at rank " << rank
        << " of " << world;
  }
}

}  // namespace lockstep
