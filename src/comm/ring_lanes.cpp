#include "comm/ring_lanes.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/pause_core.h"

namespace lockstep {
namespace {

// A smaller part is summed sooner than another thread is awake.
constexpr int64_t kLeastElements = int64_t{1} << 18;

// A thread that has to wait looks again and again for this long before it sleeps: the next piece of
// a sum comes sooner than a sleeping thread wakes.
constexpr std::chrono::microseconds kSpin{200};

template <class Done>
void spin_until(Done done) {
  for (const Clock::time_point start = Clock::now(); !done() && Clock::now() - start < kSpin;) {
    pause_core();
  }
}

}  // namespace

std::vector<Range> divide_among_lanes(Range range, int lanes, int64_t unit) {
  const int64_t parts = std::clamp<int64_t>(range.size() / kLeastElements, 1, lanes);
  std::vector<Range> ranges;
  int64_t begin = range.begin;
  for (int64_t part = 1; part < parts; ++part) {
    const int64_t end = (range.begin + range.size() * part / parts) / unit * unit;
    if (end > begin) {
      ranges.push_back({begin, end});
      begin = end;
    }
  }
  ranges.push_back({begin, range.end});
  return ranges;
}

struct RingLanes::Lane {
  Lane(const RingOptions& options, RingEdges edges, const AbortSource& abort)
      : ring(options, std::move(edges.send), std::move(edges.recv), abort) {}

  void run(Range range, int bucket, CollectiveKind kind) noexcept {
    try {
      ring.run(range, bucket, kind);
    } catch (...) {
      failure = std::current_exception();
    }
  }

  RingExecutor ring;
  Range part;
  std::atomic<bool> called{false};  ///< the thread is to do the part
  std::exception_ptr failure;
  std::thread thread;  ///< of all but the first
};

RingLanes::RingLanes(const RingOptions& options, std::vector<RingEdges> edges,
                     const AbortSource& abort)
    : unit_(options.world_size * options.pace.segment_elements) {
  for (RingEdges& of_lane : edges) {
    lanes_.emplace_back(options, std::move(of_lane), abort);
  }
  try {
    for (size_t i = 1; i < lanes_.size(); ++i) {
      lanes_[i].thread = std::thread([this, i] { serve(lanes_[i]); });
    }
  } catch (...) {
    stop();  // of a failed constructor no destructor runs
    throw;
  }
}

RingLanes::~RingLanes() {
  stop();
}

void RingLanes::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (Lane& lane : lanes_) {
    if (lane.thread.joinable()) {
      lane.thread.join();
    }
  }
}

void RingLanes::run(Range range, int bucket, CollectiveKind kind) {
  if (lanes_.size() == 1) {
    lanes_.front().ring.run(range, bucket, kind);
    return;
  }
  const std::vector<Range> parts =
      divide_among_lanes(range, static_cast<int>(lanes_.size()), unit_);
  if (parts.size() > 1) {
    {
      const std::lock_guard lock(mutex_);
      for (size_t i = 1; i < parts.size(); ++i) {
        lanes_[i].part = parts[i];
        lanes_[i].called = true;
      }
      bucket_ = bucket;
      kind_ = kind;
      running_ = parts.size() - 1;
    }
    start_.notify_all();
  }
  lanes_[0].run(parts[0], bucket, kind);
  spin_until([this] { return running_ == 0; });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
  for (const Lane& lane : lanes_) {
    if (lane.failure) {
      std::rethrow_exception(lane.failure);
    }
  }
}

void RingLanes::serve(Lane& lane) {
  while (true) {
    spin_until([&] { return lane.called.load(); });
    std::unique_lock lock(mutex_);
    start_.wait(lock, [&] { return stopping_ || lane.called; });
    if (stopping_) {
      return;
    }
    lane.called = false;
    const Range part = lane.part;
    const int bucket = bucket_;
    const CollectiveKind kind = kind_;
    lock.unlock();
    lane.run(part, bucket, kind);
    lock.lock();
    if (--running_ == 0) {
      done_.notify_one();
    }
  }
}

void RingLanes::drain() {
  for (Lane& lane : lanes_) {
    lane.ring.drain();
  }
}

void RingLanes::set_spin(std::chrono::microseconds spin) {
  for (Lane& lane : lanes_) {
    lane.ring.set_spin(spin);
  }
}

}  // namespace lockstep
