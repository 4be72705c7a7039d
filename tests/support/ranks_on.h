#pragma once

#include <string>
#include <vector>

#include "comm/peer_table.h"

namespace lockstep {

/// A table of one rank on each of `hosts`, by their ids.
inline PeerTable ranks_on(const std::vector<std::string>& hosts) {
  PeerTable peers;
  for (const std::string& host : hosts) {
    PeerInfo& peer = peers.emplace_back();
    peer.rank = static_cast<int>(peers.size()) - 1;
    peer.host_id = host;
  }
  return peers;
}

}  // namespace lockstep
