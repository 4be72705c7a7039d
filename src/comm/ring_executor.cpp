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
  send_->begin(mine);
  bool agreed = false;
  for (const RingAction& action :
       ring_schedule(options_.rank, options_.world_size, range, options_.groups_ahead)) {
    if (!agreed && action.kind != RingAction::Kind::kPublish) {
      agree(mine);
      agreed = true;
    }
    switch (action.kind) {
      case RingAction::Kind::kPublish:
        send_->publish(action.range);
        break;
      case RingAction::Kind::kReduce:
        wait([&] { return recv_->try_reduce(action.range); }, Direction::kReceive, "reduce");
        break;
      case RingAction::Kind::kCopy:
        wait([&] { return recv_->try_copy(action.range); }, Direction::kReceive, "copy");
        break;
    }
  }
  if (!agreed) {
    agree(mine);
  }
  recv_->end();
  // The successor must not depend on this rank's next wait for the rest.
  wait([&] { return send_->drained() || send_->readiness().fd < 0; }, Direction::kSend, "send");
}

void RingExecutor::drain() {
  wait([&] { return send_->drained(); }, Direction::kSend, "end");
}

template <class Attempt>
void RingExecutor::wait(Attempt attempt, Direction direction, std::string_view doing) {
  const bool sending = direction == Direction::kSend;
  const int peer = sending ? successor_ : predecessor_;
  try {
    send_->drained();  // what was published since the last wait goes out in one piece
    if (attempt()) {
      return;
    }
    // A peer that has begun this collective waits itself for one that has not: that rank's
    // neighbour is to name it first.
    const Deadline deadline(doing == "start" ? options_.timeout
                                             : options_.timeout + options_.timeout / 4);
    const Clock::time_point start = Clock::now();
    int yields = 0;
    while (true) {
      send_->drained();  // a full socket moves on only when it is asked to
      if (attempt()) {
        return;
      }
      if (abort_.aborted()) {
        abort_.throw_if_aborted();
      }
      if (Clock::now() - start < spin_.load(std::memory_order_relaxed)) {
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
        idle(sending);
      }
    }
  } catch (const PeerLostError& error) {
    throw_lost(error, peer, doing);
  }
}

void RingExecutor::idle(bool sending) {
  const Readiness out = send_->readiness();
  const Readiness in = sending ? Readiness{} : recv_->readiness();
  if (sending && out.fd < 0) {
    send_->sleep(kSleep);
  } else if (sending || in.fd >= 0) {
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

// Before anything of the predecessor's is touched: it must be in the same collective.
void RingExecutor::agree(const CollectiveHeader& mine) {
  CollectiveHeader theirs;
  wait([&] { return recv_->try_begin(&theirs); }, Direction::kReceive, "start");
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
