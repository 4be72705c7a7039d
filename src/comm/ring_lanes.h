#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "comm/abort_source.h"
#include "comm/collective_kind.h"
#include "comm/ring_executor.h"
#include "comm/transport.h"
#include "core/base/range.h"

namespace lockstep {

/// The parts of a range that lanes work on beside each other, in order; fewer than `lanes` when it
/// is small. All but the ends of the range are multiples of `unit`. Pure.
std::vector<Range> divide_among_lanes(Range range, int lanes, int64_t unit);

/// Rings beside each other, each of a part of every range and all but the first on threads of their
/// own: one connection moves no more than a core copies. As RingExecutor otherwise.
class RingLanes {
 public:
  /// At least one lane. `abort` outlives this.
  RingLanes(const RingOptions& options, std::vector<RingEdges> edges, const AbortSource& abort);
  ~RingLanes();
  RingLanes(const RingLanes&) = delete;
  RingLanes& operator=(const RingLanes&) = delete;
  RingLanes(RingLanes&&) = delete;
  RingLanes& operator=(RingLanes&&) = delete;

  /// Returns or throws when all lanes have ended.
  void run(Range range, int bucket, CollectiveKind kind = CollectiveKind::kAllReduce);
  void drain();
  void set_spin(std::chrono::microseconds spin);

 private:
  struct Lane;

  void serve(Lane& lane);
  /// Ends the threads.
  void stop() noexcept;

  int64_t unit_;
  std::deque<Lane> lanes_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  int bucket_ = -1;
  CollectiveKind kind_ = CollectiveKind::kAllReduce;
  std::atomic<size_t> running_{0};  ///< lanes with a thread that have a part to do
  bool stopping_ = false;
};

}  // namespace lockstep
