#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "comm/abort_source.h"
#include "comm/collective_kind.h"
#include "comm/communicator.h"
#include "comm/ring_lanes.h"
#include "comm/ring_links.h"
#include "comm/transport_select.h"
#include "core/base/clock.h"

namespace lockstep {
namespace {

// A smaller range costs less than the wake of another thread: it waits for finish() or for a larger
// one.
constexpr int64_t kWakeElements = 4096;
// A wait beside the caller's computation soon gives the core back to it. In finish() the core has
// nothing else to do, unless more ranks than cores are on this host.
constexpr std::chrono::microseconds kSpinBeside{5};
constexpr std::chrono::microseconds kSpinInFinish{100};
// finish() this soon after the last collective: waking the comm thread for that one was for
// nothing.
constexpr std::chrono::microseconds kDirectFinish{50};

/// The control plane as the waits see it, and the end of the communicator.
class CommunicatorAbort final : public AbortSource {
 public:
  explicit CommunicatorAbort(ControlPlane& control) : control_(control) {}
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  bool aborted() const noexcept override {
    return stopped_.load(std::memory_order_relaxed) || control_.aborted();
  }
  void throw_if_aborted() const override {
    control_.throw_if_aborted();
    if (stopped_.load(std::memory_order_relaxed)) {
      throw PeerLostError("the communicator was closed during a collective");
    }
  }
  void await_cause() const override { control_.await_cause(); }

 private:
  ControlPlane& control_;
  std::atomic<bool> stopped_{false};
};

struct Collective {
  Range range;
  int bucket = 0;
  CollectiveKind kind = CollectiveKind::kAllReduce;
};

}  // namespace

/// One queue and one ring. Whoever runs a collective holds `busy_`: the comm thread while the
/// caller computes, and the caller itself in finish(), where it would only wait.
struct Communicator<CpuDevice>::Impl {
  Impl(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
       const CommunicatorOptions& options)
      : control_(control), abort_(control), links_(connect_ring(bootstrap, peers, options)) {
    if (bootstrap.world_size() > 1) {
      RingOptions ring;
      ring.rank = bootstrap.rank();
      ring.world_size = bootstrap.world_size();
      ring.timeout = options.collective_timeout;
      ring.pace = links_.pace;
      const PeerInfo& self = peers[static_cast<size_t>(ring.rank)];
      if (self.local_size > ::sysconf(_SC_NPROCESSORS_ONLN)) {
        spin_in_finish_ = std::chrono::microseconds(0);
      }
      lanes_.emplace(ring, std::move(links_.lanes), abort_);
      thread_ = std::thread([this] { serve(); });
    }
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() {
    abort_.stop();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void submit(const Collective& collective) {
    const Range range = collective.range;
    LOCKSTEP_CHECK(
        range.begin >= 0 && range.begin <= range.end && range.end <= links_.window.size(),
        "[{}, {}) of a window of {} elements", range.begin, range.end, links_.window.size());
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      rethrow();
      for (const Collective& other : unfinished_) {
        LOCKSTEP_CHECK(range.end <= other.range.begin || other.range.end <= range.begin,
                       "[{}, {}) is {} already and not finished", range.begin, range.end,
                       other.kind == CollectiveKind::kAllGather ? "gathered" : "summed");
      }
      unfinished_.push_back(collective);
      if (lanes_) {
        queue_.push_back(collective);
        worth_waking_ = worth_waking_ || range.size() >= kWakeElements;
        wake = worth_waking_ && !finish_expected();
        last_submit_ = Clock::now();
      }
    }
    if (wake) {
      wake_.notify_one();
    }
  }

  void finish() {
    if (!lanes_) {
      unfinished_.clear();
      return;
    }
    const Clock::time_point start = Clock::now();
    std::unique_lock lock(mutex_);
    finish_was_direct_ = start - last_submit_ < kDirectFinish;
    finishing_since_ = start;
    last_count_ = unfinished_.size();
    lanes_->set_spin(spin_in_finish_);
    while (!failure_ && (busy_ || !queue_.empty())) {
      if (busy_) {
        done_.wait(lock);
      } else {
        run_next(lock);
      }
    }
    rethrow();
    if (!unfinished_.empty()) {
      control_.set_bucket(last_bucket_);  // a collective ends when the neighbours have what it sent
      guarded(lock, [&] { lanes_->drain(); });
      control_.set_bucket(-1);
      unfinished_.clear();
    }
    lanes_->set_spin(kSpinBeside);
    finishing_since_.reset();
    const double seconds = seconds_since(start);
    times_.total_seconds += seconds;
    times_.exposed_seconds += seconds;
    rethrow();
  }

  // Whether the caller, if it does as in its last round, now calls finish() and runs what is in the
  // queue itself. A wake-up in vain costs two switches of a core that is at work.
  bool finish_expected() const { return finish_was_direct_ && unfinished_.size() == last_count_; }

  // The body of the comm thread.
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] {
        return stopping_ || (!failure_ && !busy_ && worth_waking_ && !queue_.empty());
      });
      if (stopping_) {
        return;
      }
      run_next(lock);
    }
  }

  // Takes the oldest collective from the queue and runs it without the lock.
  void run_next(std::unique_lock<std::mutex>& lock) {
    const Collective next = queue_.front();
    queue_.pop_front();
    worth_waking_ = worth_waking_ && !queue_.empty();
    last_bucket_ = next.bucket;
    control_.set_bucket(next.bucket);
    guarded(lock, [&] { lanes_->run(next.range, next.bucket, next.kind); });
    control_.set_bucket(-1);
  }

  // An error ends the communicator, and the group is told before anybody else sees it: the caller
  // may be far away in its computation.
  template <class Work>
  void guarded(std::unique_lock<std::mutex>& lock, Work work) {
    busy_ = true;
    lock.unlock();
    const Clock::time_point start = Clock::now();
    std::exception_ptr failure;
    try {
      work();
    } catch (const AbortedError&) {
      failure = std::current_exception();
    } catch (const Error& error) {
      failure = std::current_exception();
      control_.report(error);
    } catch (...) {
      failure = std::current_exception();
    }
    const Clock::time_point end = Clock::now();
    lock.lock();
    busy_ = false;
    const Clock::time_point beside = finishing_since_ ? std::min(end, *finishing_since_) : end;
    if (beside > start) {
      times_.total_seconds += std::chrono::duration<double>(beside - start).count();
    }
    if (failure) {
      failure_ = failure;
    }
    done_.notify_all();
  }

  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    control_.throw_if_aborted();
  }

  ControlPlane& control_;
  CommunicatorAbort abort_;
  RingLinks links_;
  std::optional<RingLanes> lanes_;
  std::chrono::microseconds spin_in_finish_ = kSpinInFinish;

  std::mutex mutex_;
  std::condition_variable wake_;  ///< for the comm thread: work or the end
  std::condition_variable done_;  ///< for finish(): a collective ended
  std::deque<Collective> queue_;
  std::vector<Collective> unfinished_;  ///< started since the last finish()
  int last_bucket_ = -1;                ///< of the last collective that ran
  size_t last_count_ = 0;               ///< how many there were at the last finish()
  bool finish_was_direct_ = false;
  Clock::time_point last_submit_;
  std::optional<Clock::time_point> finishing_since_;  ///< while finish() runs, which counts itself
  bool worth_waking_ = false;  ///< the queue holds a range that pays for the comm thread
  bool busy_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  CommTimes times_;
  std::thread thread_;
};

Communicator<CpuDevice>::Communicator(Bootstrap& bootstrap, const PeerTable& peers,
                                      ControlPlane& control, const CommunicatorOptions& options) {
  if (serves_gpus_only(options.transport)) {
    throw UsageError("--transport {} is for GPUs; use --transport auto",
                     transport_word(options.transport));
  }
  impl_ = std::make_unique<Impl>(bootstrap, peers, control, options);
}

Communicator<CpuDevice>::~Communicator() = default;

CpuView<float> Communicator<CpuDevice>::window() {
  return impl_->links_.window;
}

void Communicator<CpuDevice>::all_reduce(CpuStream& /*stream*/, Range range, int bucket,
                                         SumLoad /*load*/) {
  impl_->submit({range, bucket, CollectiveKind::kAllReduce});
}

void Communicator<CpuDevice>::reduce_scatter(CpuStream& /*stream*/, Range range, int bucket,
                                             SumLoad /*load*/) {
  impl_->submit({range, bucket, CollectiveKind::kReduceScatter});
}

void Communicator<CpuDevice>::all_gather(CpuStream& /*stream*/, Range range, int bucket,
                                         SumLoad /*load*/) {
  impl_->submit({range, bucket, CollectiveKind::kAllGather});
}

void Communicator<CpuDevice>::finish(CpuStream& /*stream*/) {
  impl_->finish();
}

CommTimes Communicator<CpuDevice>::take_times() {
  const std::lock_guard lock(impl_->mutex_);
  return std::exchange(impl_->times_, {});
}

std::string Communicator<CpuDevice>::transport_name() const {
  return impl_->links_.name;
}

}  // namespace lockstep
