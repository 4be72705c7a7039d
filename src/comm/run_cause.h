#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "comm/peer_table.h"
#include "comm/rank_status.h"
#include "core/base/error.h"

namespace lockstep {

/// Why a run of several ranks ended: what every rank leaves with and one of them prints.
struct RunCause {
  ExitCode code = ExitCode::kInternal;
  int lost_rank = -1;  ///< rank that can no longer speak for itself; -1: none
  std::string message;
};

/// Whether `rank` prints the message if none of its host has yet: rank 0, unless that is lost; then
/// every rank of one host, another than rank 0's if there is one, because hosts fail as a whole.
bool may_print(const RunCause& cause, const PeerTable& peers, int rank);

// The causes, with who, where and what to do. `status` is the last that is known of the rank.

/// Its connection closed before the end of the run.
RunCause rank_died(const PeerInfo& rank, const RankStatus& status);
/// It was silent for `limit` although its connection stands.
RunCause rank_stopped(const PeerInfo& rank, const RankStatus& status,
                      std::chrono::milliseconds limit);
/// It ended in order, but before the others.
RunCause rank_left(const PeerInfo& rank, const RankStatus& status);
/// It lives, but did not come to the end of the run within `limit` after rank 0.
RunCause rank_late(const PeerInfo& rank, const RankStatus& status, std::chrono::milliseconds limit);
/// It reports an error of its own.
RunCause rank_failed(const PeerInfo& rank, const RankStatus& status, const Error& error);
/// It broke the protocol of the control connection.
RunCause rank_garbled(const PeerInfo& rank, const RankStatus& status);

}  // namespace lockstep
