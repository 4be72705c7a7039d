#include "comm/run_cause.h"

#include "wire.pb.h"

namespace lockstep {
namespace {

std::string who(const PeerInfo& rank) {
  return fmt::format("rank {} (host {}, pid {})", rank.rank, rank.host, rank.pid);
}

double seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kStart:
      return "start";
    case Phase::kLoad:
      return "load";
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kAllReduce:
      return "all-reduce";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kEvaluate:
      return "evaluate";
    case Phase::kSave:
      return "save";
    case Phase::kShutdown:
      return "shutdown";
  }
  return "unknown phase";
}

std::string describe(const RankStatus& status) {
  std::string text;
  if (status.step >= 0) {
    text = fmt::format("step {}, ", status.step);
  }
  text += phase_name(status.phase);
  if (status.bucket >= 0) {
    text += fmt::format(", bucket {}", status.bucket);
  }
  return text;
}

RunCause rank_died(const PeerInfo& rank, const RankStatus& status) {
  return {ExitCode::kPeerLost, rank.rank,
          fmt::format("{} died in {}; its own last output or its host's log (a signal, out of "
                      "memory) says why; --resume continues from the last checkpoint",
                      who(rank), describe(status))};
}

RunCause rank_stopped(const PeerInfo& rank, const RankStatus& status,
                      std::chrono::milliseconds limit) {
  return {ExitCode::kTimeout, rank.rank,
          fmt::format("{} stopped answering in {}: nothing heard for {:g} s; see whether it is "
                      "stopped, its host overloaded or the network cut; --resume continues from "
                      "the last checkpoint",
                      who(rank), describe(status), seconds(limit))};
}

RunCause rank_left(const PeerInfo& rank, const RankStatus& status) {
  return {ExitCode::kPeerLost, rank.rank,
          fmt::format("{} left the run before its end, in {}; its own last output says why",
                      who(rank), describe(status))};
}

RunCause rank_late(const PeerInfo& rank, const RankStatus& status,
                   std::chrono::milliseconds limit) {
  return {ExitCode::kTimeout, -1,
          fmt::format("{} did not come to the end of the run within {:g} s of the others; it is in "
                      "{}",
                      who(rank), seconds(limit), describe(status))};
}

RunCause rank_failed(const PeerInfo& rank, const RankStatus& status, const Error& error) {
  return {error.code(), -1,
          fmt::format("{} failed in {}: {}", who(rank), describe(status), error.what())};
}

RunCause rank_garbled(const PeerInfo& rank, const RankStatus& status) {
  return {ExitCode::kPeerLost, rank.rank,
          fmt::format("{} sent what is no control message, in {}; see whether its host or network "
                      "card is faulty",
                      who(rank), describe(status))};
}

void pack(const RunCause& cause, wire::Cause* message) {
  constexpr size_t max_bytes = 4096;
  message->set_code(static_cast<int>(cause.code));
  message->set_lost_rank(cause.lost_rank);
  message->set_message(cause.message.substr(0, max_bytes));
}

RunCause unpack(const wire::Cause& message) {
  return {static_cast<ExitCode>(message.code()), message.lost_rank(), message.message()};
}

}  // namespace lockstep
