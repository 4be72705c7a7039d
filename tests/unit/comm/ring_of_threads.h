#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "comm/abort_source.h"
#include "comm/ring_executor.h"
#include "comm/ring_links.h"
#include "comm/ring_schedule.h"
#include "core/base/error.h"
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
  bool slow_copies = false;  ///< every rank takes its time before it copies what was published
};

/// A receiving end that lets the sender run ahead.
class SlowRecvEdge final : public RecvEdge {
 public:
  explicit SlowRecvEdge(std::unique_ptr<RecvEdge> edge) : edge_(std::move(edge)) {}

  bool try_begin(CollectiveHeader* header) override { return edge_->try_begin(header); }
  bool try_reduce(Range range) override { return edge_->try_reduce(range); }
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
      if (setup.slow_copies) {
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

inline void expect_integer_sums(int world, Range range, CpuView<float> window) {
  for (int64_t i = 0; i < window.size(); ++i) {
    float expected = -1;  // untouched outside the range
    if (i >= range.begin && i < range.end) {
      expected = 0;
      for (int rank = 0; rank < world; ++rank) {
        expected += integer_at(rank, i);
      }
    }
    ASSERT_EQ(window[i], expected) << "element " << i << " of [" << range.begin << ", " << range.end
                                   << ") and " << world << " ranks";
  }
}

}  // namespace lockstep
