#include "comm/cuda/nccl_guard.h"

#include <string>

#include "comm/cuda/gpu_word.h"
#include "comm/sum_time.h"
#include "core/base/error.h"

namespace lockstep {
NcclGuard::NcclGuard(Nccl& nccl, ControlPlane& control, const PeerTable& peers, int rank,
                     std::chrono::milliseconds timeout, const CollectiveWords& words)
    : nccl_(nccl),
      control_(control),
      peers_(peers),
      rank_(rank),
      timeout_(timeout),
      words_(words),
      thread_([this] { serve(); }) {}

NcclGuard::~NcclGuard() {
  stop();
}

void NcclGuard::abort() {
  {
    const std::lock_guard lock(mutex_);
    aborting_ = true;
  }
  wake_.notify_all();
}

void NcclGuard::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void NcclGuard::serve() {
  SumTime sum(Clock::now());
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kGpuLook, [this] { return aborting_ || stopping_; })) {
    const int bucket = load_word(words_.bucket);
    const Clock::duration under_way = sum.look(bucket, load_word(words_.busy_ns), Clock::now());
    aborting_ = control_.aborted() || nccl_failed() || is_late(bucket, under_way);
  }
  if (aborting_) {
    lock.unlock();
    nccl_.abort();
  }
}

/// Reports what NCCL found wrong, unless that follows from what the group knows already.
bool NcclGuard::nccl_failed() {
  const std::string problem = nccl_.problem();
  if (problem.empty()) {
    return false;
  }
  try {
    control_.await_cause();
    control_.report(PeerLostError("NCCL: {}", problem));
  } catch (const AbortedError&) {
  }
  return true;
}

bool NcclGuard::is_late(int bucket, Clock::duration under_way) {
  if (under_way < timeout_) {
    return false;
  }
  const std::string late = peers_.size() == 2 ? rank_name(peers_[static_cast<size_t>(1 - rank_)])
                                              : std::string("a rank that NCCL does not name");
  control_.report(TimeoutError("waited {} s for {} in the all-reduce of bucket {}",
                               std::chrono::duration<double>(timeout_).count(), late, bucket));
  return true;
}

}  // namespace lockstep
