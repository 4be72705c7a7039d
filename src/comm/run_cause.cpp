#include "comm/run_cause.h"

#include <algorithm>

namespace lockstep {
namespace {

double seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

bool may_print(const RunCause& cause, const PeerTable& peers, int rank) {
  if (cause.lost_rank != 0) {
    return rank == 0;
  }
  const auto& host_id = peers[0].host_id;
  const auto elsewhere = std::find_if(
      peers.begin(), peers.end(), [&](const PeerInfo& peer) { return peer.host_id != host_id; });
  return rank != 0 && peers[static_cast<size_t>(rank)].host_id ==
                          (elsewhere == peers.end() ? host_id : elsewhere->host_id);
}

RunCause rank_died(const PeerInfo& rank, const RankStatus& status) {
  return {ExitCode::kPeerLost, rank.rank,
          fmt::format("{} died in {}; its own last output or its host's log (a signal, out of "
                      "memory) says why; --resume continues from the last checkpoint",
                      rank_name(rank), describe(status))};
}

RunCause rank_stopped(const PeerInfo& rank, const RankStatus& status,
                      std::chrono::milliseconds limit) {
  return {ExitCode::kTimeout, rank.rank,
          fmt::format("{} stopped answering in {}: nothing heard for {:g} s; see whether it is "
                      "stopped, its host overloaded or the network cut; --resume continues from "
                      "the last checkpoint",
                      rank_name(rank), describe(status), seconds(limit))};
}

RunCause rank_left(const PeerInfo& rank, const RankStatus& status) {
  return {ExitCode::kPeerLost, rank.rank,
          fmt::format("{} left the run before its end, in {}; its own last output says why",
                      rank_name(rank), describe(status))};
}

RunCause rank_late(const PeerInfo& rank, const RankStatus& status,
                   std::chrono::milliseconds limit) {
  return {ExitCode::kTimeout, -1,
          fmt::format("{} did not come to the end of the run within {:g} s of rank 0; it is in "
                      "{}",
                      rank_name(rank), seconds(limit), describe(status))};
}

RunCause rank_failed(const PeerInfo& rank, const RankStatus& status, const Error& error) {
  return {error.code(), -1,
          fmt::format("{} failed in {}: {}", rank_name(rank), describe(status), error.what())};
}

RunCause rank_garbled(const PeerInfo& rank, const RankStatus& status) {
  return {ExitCode::kPeerLost, rank.rank,
          fmt::format("{} sent what is no control message, in {}; see whether its host or network "
                      "card is faulty",
                      rank_name(rank), describe(status))};
}

}  // namespace lockstep
