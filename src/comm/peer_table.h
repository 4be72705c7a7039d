#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/bootstrap.h"

namespace lockstep {

/// Who a rank is and how it is reached.
struct PeerInfo {
  int rank = 0;
  int local_rank = 0;   ///< index among the ranks of its host
  int local_size = 1;   ///< ranks on its host
  std::string host;     ///< name to print
  std::string host_id;  ///< equal exactly for ranks that can share memory: boot id and memory
                        ///< namespace, not the name
  int64_t pid = 0;
};

/// "rank 1 (host a, pid 99)".
std::string rank_name(const PeerInfo& rank);

/// All ranks, by rank: the same on each of them.
using PeerTable = std::vector<PeerInfo>;

/// Whether all ranks can share memory.
bool on_one_host(const PeerTable& peers);

/// The lowest rank of a host; `host_id` is in the table.
const PeerInfo& first_of_host(const PeerTable& peers, const std::string& host_id);

/// Describes this process and gathers everyone's description. Collective.
PeerTable gather_peer_table(Bootstrap& bootstrap);

}  // namespace lockstep
