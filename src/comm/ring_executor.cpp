#include "comm/ring_executor.h"

#include <poll.h>
#include <sched.h>

#include <array>
#include <utility>

#include "comm/ring_schedule.h"
#include "core/base/clock.h"

namespace lockstep {
namespace {

// A sleeping wait looks at the abort and at the deadline this often.
constexpr std::chrono::microseconds kSleep{5000};
// A wait on shared memory while a socket still has to send looks at the socket this often.
constexpr std::chrono::microseconds kSleepWhileSending{100};
// sched_yield calls between spinning and sleeping: on a busy machine the peer gets this core.
constexpr int kYields = 4;
// Two ranks gain nothing from blocks, as each element passes through a rank once. For more, 16
// segments (1 MiB) of each owner keep what a neighbour reads next in the shared cache.
constexpr int64_t kSegmentsPerStep = 16;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

RingExecutor::RingExecutor(const RingOptions& options, std::unique_ptr<SendEdge> send,
                           std::unique_ptr<RecvEdge> recv, const AbortSource& abort)
    : options_(options),
      predecessor_((options.rank + options.world_size - 1) % options.world_size),
      successor_((options.rank + 1) % options.world_size),
      send_(std::move(send)),
      recv_(std::move(recv)),
      abort_(abort) {}

void RingExecutor::run(Range range, int bucket) {
  bucket_ = bucket;
  const CollectiveHeader mine = {++sequence_, range, sizeof(float), bucket};
  wait([&] { return send_->begin(mine), true; }, successor_, "start");
  CollectiveHeader theirs;
  wait([&] { return recv_->try_begin(&theirs); }, predecessor_, "start");
  check_agreement(mine, theirs);

  const int64_t segments_per_step = options_.world_size == 2 ? 0 : kSegmentsPerStep;
  for (const RingAction& action :
       ring_schedule(options_.rank, options_.world_size, range, segments_per_step)) {
    switch (action.kind) {
      case RingAction::Kind::kPublish:
        wait([&] { return send_->publish(action.range), true; }, successor_, "send");
        break;
      case RingAction::Kind::kReduce:
        wait([&] { return recv_->try_reduce(action.range); }, predecessor_, "reduce");
        break;
      case RingAction::Kind::kCopy:
        wait([&] { return recv_->try_copy(action.range); }, predecessor_, "copy");
        break;
    }
  }
  recv_->end();
}

void RingExecutor::drain() {
  wait([&] { return send_->drained(); }, successor_, "end");
}

template <class Attempt>
void RingExecutor::wait(Attempt attempt, int peer, std::string_view doing) {
  try {
    if (attempt()) {
      return;
    }
    const bool draining = peer == successor_ && doing == "end";
    const Deadline deadline(options_.timeout);
    const Deadline spinning(options_.spin);
    int yields = 0;
    while (true) {
      send_->drained();  // a full socket moves on only when it is asked to
      if (attempt()) {
        return;
      }
      if (abort_.aborted()) {
        abort_.throw_if_aborted();
      }
      if (!spinning.passed()) {
        pause_core();
      } else if (yields < kYields) {
        ++yields;
        ::sched_yield();
      } else if (deadline.passed()) {
        throw TimeoutError(
            "rank {} waited {:.1f} s for rank {} in the all-reduce of bucket {} ({} of collective "
            "{})",
            options_.rank, deadline.limit_seconds(), peer, bucket_, doing, sequence_);
      } else {
        idle(draining);
      }
    }
  } catch (const PeerLostError& error) {
    throw_lost(error, peer, doing);
  }
}

void RingExecutor::idle(bool draining) {
  const Readiness out = send_->readiness();
  const Readiness in = draining ? Readiness{} : recv_->readiness();
  if (draining && out.fd < 0) {
    send_->sleep(kSleep);
  } else if (draining || in.fd >= 0) {
    std::array<pollfd, 2> fds = {pollfd{in.fd, in.events, 0}, pollfd{out.fd, out.events, 0}};
    ::poll(fds.data(), fds.size(), static_cast<int>(kSleep.count() / 1000));
  } else {
    recv_->sleep(out.fd >= 0 ? kSleepWhileSending : kSleep);
  }
}

// A broken connection is a consequence: the cause, if another rank knows it, comes first.
void RingExecutor::throw_lost(const PeerLostError& error, int peer, std::string_view doing) const {
  abort_.await_cause();
  throw PeerLostError(
      "rank {} lost rank {} in the all-reduce of bucket {} ({} of collective {}): {}",
      options_.rank, peer, bucket_, doing, sequence_, error.what());
}

void RingExecutor::check_agreement(const CollectiveHeader& mine,
                                   const CollectiveHeader& theirs) const {
  if (mine == theirs) {
    return;
  }
  const auto describe = [](const CollectiveHeader& header) {
    return fmt::format("collective {}, bucket {}, elements [{}, {}) of {} bytes", header.sequence,
                       header.bucket, header.range.begin, header.range.end, header.element_bytes);
  };
  throw RanksDisagreeError(
      "the ranks call different all-reduces: rank {} is in {}; rank {} is in {}", options_.rank,
      describe(mine), predecessor_, describe(theirs));
}

}  // namespace lockstep
