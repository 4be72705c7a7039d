#include "comm/run_outcome.h"

#include <utility>

namespace lockstep {

void RunOutcome::finish() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
}

void RunOutcome::abort(RunCause cause) {
  {
    const std::lock_guard lock(mutex_);
    cause_ = std::move(cause);
    aborted_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

void RunOutcome::throw_if_aborted() const {
  if (aborted()) {
    const std::lock_guard lock(mutex_);
    throw AbortedError(cause_->code, cause_->message);
  }
}

void RunOutcome::await() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return settled(); });
}

bool RunOutcome::await(std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return settled(); });
}

}  // namespace lockstep
