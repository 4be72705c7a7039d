#include "comm/transport_select.h"

#include <algorithm>

#include "core/base/error.h"

namespace lockstep {

TransportChoice transport_choice(std::string_view word) {
  const auto found = std::find(kTransportWords.begin(), kTransportWords.end(), word);
  LOCKSTEP_CHECK(found != kTransportWords.end(), "transport {}", word);
  return static_cast<TransportChoice>(found - kTransportWords.begin());
}

std::string transport_word(TransportChoice choice) {
  return kTransportWords[static_cast<size_t>(choice)];
}

bool serves_gpus_only(TransportChoice choice) {
  return choice == TransportChoice::kPeer || choice == TransportChoice::kStaged ||
         choice == TransportChoice::kNccl;
}

bool has_ring_bits(TransportChoice choice, int ranks) {
  return choice != TransportChoice::kNccl || ranks <= 2;  // of one addition there is one order
}

std::vector<TransportKind> select_transports(const PeerTable& peers, TransportChoice choice,
                                             const std::vector<bool>& maps_predecessor) {
  LOCKSTEP_CHECK(maps_predecessor.size() == peers.size(), "{} verdicts of {} ranks",
                 maps_predecessor.size(), peers.size());
  std::vector<TransportKind> edges;
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    const size_t next = (rank + 1) % peers.size();
    const bool same_host = peers[rank].host_id == peers[next].host_id;
    const bool shared = same_host && maps_predecessor[next];
    if (choice == TransportChoice::kShm && !shared) {
      throw UsageError(
          "--transport shm cannot serve ranks {} on {} and {} on {}: {}; use --transport auto",
          rank, peers[rank].host, next, peers[next].host,
          same_host ? "they run in different containers or as different users"
                    : "they are on different hosts");
    }
    edges.push_back(choice != TransportChoice::kSocket && shared ? TransportKind::kShm
                                                                 : TransportKind::kSocket);
  }
  return edges;
}

std::string transport_names(const std::vector<TransportKind>& edges) {
  const auto has = [&](TransportKind kind) {
    return std::find(edges.begin(), edges.end(), kind) != edges.end();
  };
  if (has(TransportKind::kShm)) {
    return has(TransportKind::kSocket) ? "shm+socket" : "shm";
  }
  return "socket";
}

}  // namespace lockstep
