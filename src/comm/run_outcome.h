#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "comm/run_cause.h"

namespace lockstep {

/// How the run ends for this rank: in order, or by a cause. One thread settles it, once; any may
/// look and wait.
class RunOutcome {
 public:
  void finish();
  void abort(RunCause cause);

  /// For the thread that settles it.
  bool settled() const { return finished_ || cause_; }

  /// Cheap.
  bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }
  /// Throws AbortedError with the cause.
  void throw_if_aborted() const;

  void await() const;
  /// Whether it was settled within the limit.
  bool await(std::chrono::milliseconds limit) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<RunCause> cause_;
  bool finished_ = false;
  std::atomic<bool> aborted_{false};
};

}  // namespace lockstep
