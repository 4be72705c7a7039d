#include "comm/cuda/collective_watch.h"

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "comm/cuda/gpu_word.h"
#include "core/base/error.h"
#include "core/device/buffer.h"
#include "core/device/cuda_device.h"

namespace lockstep {
struct CollectiveWatch::Impl {
  Impl(ControlPlane& control, const PeerTable& peers, std::chrono::milliseconds timeout)
      : control_(control), peers_(peers), timeout_(timeout), memory_(sizeof(CollectiveWords)) {
    words_ = new (memory_.view().data()) CollectiveWords;
    thread_ = std::thread([this] { serve(); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() { stop(); }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) {
      thread_.join();
    }
    end_waits();
    cudaDeviceSynchronize();
  }

  void end_waits() { store_word(words_->abort, 1U); }

  void serve() {
    std::unique_lock lock(mutex_);
    int shown = -1;
    while (!wake_.wait_for(lock, kGpuLook, [this] { return stopping_; })) {
      if (const int bucket = load_word(words_->bucket); bucket != shown) {
        control_.set_bucket(bucket);
        shown = bucket;
      }
      if (control_.aborted()) {
        end_waits();
      } else if (load_word(words_->abort) != 0) {
        report_late();
      }
    }
  }

  void report_late() {
    if (std::exchange(reported_, true)) {
      return;
    }
    const auto rank = static_cast<size_t>(load_word(words_->late_rank));
    if (load_word(words_->disagrees) != 0) {
      control_.report(RanksDisagreeError("{} does not sum what another rank sums up to bucket {}",
                                         rank_name(peers_[rank]), load_word(words_->late_bucket)));
      return;
    }
    control_.report(TimeoutError("waited {2} s for {0} in the all-reduce of bucket {1}",
                                 rank_name(peers_[rank]), load_word(words_->late_bucket),
                                 std::chrono::duration<double>(timeout_).count()));
  }

  ControlPlane& control_;
  const PeerTable& peers_;
  std::chrono::milliseconds timeout_;
  Buffer<CudaHost, std::byte> memory_;
  CollectiveWords* words_;
  uint64_t taken_ns_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool reported_ = false;
  std::thread thread_;
};

CollectiveWatch::CollectiveWatch(ControlPlane& control, const PeerTable& peers,
                                 std::chrono::milliseconds timeout)
    : impl_(std::make_unique<Impl>(control, peers, timeout)) {}

CollectiveWatch::~CollectiveWatch() = default;

void CollectiveWatch::stop() {
  impl_->stop();
}

WaitLimit CollectiveWatch::limit() const {
  return {impl_->words_, static_cast<uint64_t>(std::chrono::nanoseconds(impl_->timeout_).count())};
}

void CollectiveWatch::throw_if_failed() {
  impl_->control_.throw_if_aborted();
  if (load_word(impl_->words_->abort) == 0) {
    return;
  }
  // The GPU ended a wait just now: its report is about to become the cause of the group.
  impl_->control_.await_cause();
  throw PeerLostError("a rank did not come to an all-reduce");
}

double CollectiveWatch::take_busy_seconds() {
  const uint64_t busy = load_word(impl_->words_->busy_ns);
  return static_cast<double>(busy - std::exchange(impl_->taken_ns_, busy)) * 1e-9;
}

}  // namespace lockstep
