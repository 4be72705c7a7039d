#include "comm/ring_executor.h"

#include <poll.h>
#include <sched.h>

#include <array>
#include <string>
#include <utility>

#include "comm/running_time.h"
#include "core/base/clock.h"
#include "core/base/pause_core.h"

namespace lockstep {
namespace {

// A sleeping wait looks at the abort and at the deadline this often.
constexpr std::chrono::microseconds kSleep{5000};
// A look that comes later after the last one than twice this was kept from coming.
constexpr std::chrono::milliseconds kLongestLook{250};
// A wait on shared memory while a socket still has to send looks at the socket this often.
constexpr std::chrono::microseconds kSleepWhileSending{100};
// sched_yield calls between spinning and sleeping: on a busy machine the peer gets this core.
constexpr int kYields = 4;

}  // namespace

RingExecutor::RingExecutor(const RingOptions& options, std::unique_ptr<SendEdge> send,
                           std::unique_ptr<RecvEdge> recv, const AbortSource& abort)
    : options_(options),
      predecessor_((options.rank + options.world_size - 1) % options.world_size),
      successor_((options.rank + 1) % options.world_size),
      send_(std::move(send)),
      recv_(std::move(recv)),
      abort_(abort) {}

/// Calls an edge. When its connection breaks, the neighbour of the stage is the one that is lost.
template <class Call>
auto RingExecutor::naming_peer(Stage stage, Call call) {
  try {
    return call();
  } catch (const PeerLostError& error) {
    throw_lost(stage, error);
  }
}

void RingExecutor::run(Range range, int bucket, CollectiveKind kind) {
  bucket_ = bucket;
  kind_ = kind;
  const CollectiveHeader mine = {++sequence_, range, sizeof(float), bucket, kind};
  wait(Stage::kSend, [&] { return send_->can_begin(); });
  send_->begin(mine);
  bool agreed = false;
  for (const RingAction& action :
       ring_schedule(options_.rank, options_.world_size, range, options_.pace, kind)) {
    if (!agreed && action.kind != RingAction::Kind::kPublish) {
      agree(mine);
      agreed = true;
    }
    switch (action.kind) {
      case RingAction::Kind::kPublish:
        send_->publish(action.range);
        break;
      case RingAction::Kind::kReduce:
        wait(Stage::kReduce, [&] { return recv_->try_reduce(action.range); });
        break;
      case RingAction::Kind::kCopy:
        wait(Stage::kCopy, [&] { return recv_->try_copy(action.range); });
        break;
    }
  }
  if (!agreed) {
    agree(mine);
  }
  naming_peer(Stage::kAnswer, [&] { recv_->end(); });
  // The successor must not depend on this rank's next wait for the rest.
  wait(Stage::kSend, [&] { return send_->flush(); });
}

void RingExecutor::drain() {
  wait(Stage::kEnd, [&] { return send_->drained(); });
}

template <class Attempt>
void RingExecutor::wait(Stage stage, Attempt attempt) {
  const auto succeeds = [&] {
    // What was published since the last wait goes out in one piece; a full socket moves on only
    // when it is asked to.
    naming_peer(Stage::kSend, [&] { return send_->flush(); });
    return naming_peer(stage, attempt);
  };
  if (succeeds()) {
    return;
  }
  const Clock::time_point start = Clock::now();
  RunningTime running(kLongestLook, start);
  Clock::duration waited{};
  int yields = 0;
  while (!succeeds()) {
    if (abort_.aborted()) {
      abort_.throw_if_aborted();
    }
    if (Clock::now() - start < spin_.load(std::memory_order_relaxed)) {
      pause_core();
    } else if (yields < kYields) {
      ++yields;
      ::sched_yield();
    } else if (waited += running.tick(Clock::now()); waited >= limit(stage)) {
      throw_late(stage);
    } else {
      idle(stage);
    }
  }
}

std::string_view RingExecutor::name(Stage stage) {
  switch (stage) {
    case Stage::kStart:
      return "start";
    case Stage::kReduce:
      return "reduce";
    case Stage::kCopy:
      return "copy";
    case Stage::kAnswer:
      return "answer";
    case Stage::kSend:
      return "send";
    case Stage::kEnd:
      return "end";
  }
  return "";
}

// A peer that has begun a collective waits itself for one that has not: that rank's neighbour is to
// name it first.
std::chrono::milliseconds RingExecutor::limit(Stage stage) const {
  return stage == Stage::kStart ? options_.timeout : options_.timeout + options_.timeout / 4;
}

void RingExecutor::idle(Stage stage) {
  const Readiness out = send_->readiness();
  const Readiness in = sends(stage) ? Readiness{} : recv_->readiness();
  if (sends(stage) && out.fd < 0) {
    send_->sleep(kSleep);
  } else if (sends(stage) || in.fd >= 0) {
    std::array<pollfd, 2> fds = {pollfd{in.fd, in.events, 0}, pollfd{out.fd, out.events, 0}};
    ::poll(fds.data(), fds.size(), static_cast<int>(kSleep.count() / 1000));
  } else {
    recv_->sleep(out.fd >= 0 ? kSleepWhileSending : kSleep);
  }
}

void RingExecutor::throw_late(Stage stage) const {
  throw TimeoutError(
      "rank {} waited {:.1f} s for rank {} in the {} of bucket {} ({} of collective {})",
      options_.rank, std::chrono::duration<double>(limit(stage)).count(), peer(stage),
      collective_name(kind_), bucket_, name(stage), sequence_);
}

// A broken connection is a consequence: the cause, if another rank knows it, comes first.
void RingExecutor::throw_lost(Stage stage, const PeerLostError& error) const {
  abort_.await_cause();
  throw PeerLostError("rank {} lost rank {} in the {} of bucket {} ({} of collective {}): {}",
                      options_.rank, peer(stage), collective_name(kind_), bucket_, name(stage),
                      sequence_, error.what());
}

// Before anything of the predecessor's is touched: it must be in the same collective.
void RingExecutor::agree(const CollectiveHeader& mine) {
  CollectiveHeader theirs;
  wait(Stage::kStart, [&] { return recv_->try_begin(&theirs); });
  if (mine == theirs) {
    return;
  }
  const bool same_kind = mine.kind == theirs.kind;
  const auto describe = [&](const CollectiveHeader& header) {
    const std::string kind = same_kind ? "" : fmt::format(" ({})", collective_name(header.kind));
    return fmt::format("collective {}{}, bucket {}, elements [{}, {}) of {} bytes", header.sequence,
                       kind, header.bucket, header.range.begin, header.range.end,
                       header.element_bytes);
  };
  throw RanksDisagreeError("the ranks call different {}s: rank {} is in {}; rank {} is in {}",
                           same_kind ? collective_name(mine.kind) : "collective", options_.rank,
                           describe(mine), predecessor_, describe(theirs));
}

}  // namespace lockstep
