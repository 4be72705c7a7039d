#include "comm/ring_links.h"

#include <optional>
#include <utility>
#include <vector>

#include "comm/connection.h"
#include "comm/shm_transport.h"
#include "comm/socket_transport.h"
#include "comm/transport_select.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

void check_options(Bootstrap& bootstrap, const CommunicatorOptions& options) {
  const std::vector<std::string> all = bootstrap.all_gather(fmt::format(
      "a window of {} elements, transport choice {} and {} lanes", options.window_elements,
      static_cast<int>(options.transport), options.ring_lanes));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw RanksDisagreeError("rank 0 has {}, rank {} has {}", all[0], rank, all[rank]);
    }
  }
}

/// A rank and the two beside it in the ring.
struct Neighbours {
  Neighbours(const Bootstrap& bootstrap, const PeerTable& table)
      : peers(table),
        rank(bootstrap.rank()),
        successor((rank + 1) % bootstrap.world_size()),
        predecessor((rank + bootstrap.world_size() - 1) % bootstrap.world_size()) {}

  bool shares_host_with(int other) const {
    return peers[static_cast<size_t>(other)].host_id == peers[static_cast<size_t>(rank)].host_id;
  }
  SocketPath path_to(int other) const {
    return shares_host_with(other) ? SocketPath::kLoopback : SocketPath::kNetwork;
  }

  const PeerTable& peers;
  int rank;
  int successor;
  int predecessor;
};

/// Which ranks have mapped the region of the rank before them: this rank's verdict is made here, if
/// it has a region at all. Collective.
std::vector<bool> map_predecessors(Bootstrap& bootstrap, const Neighbours& ring,
                                   const ShmRegion* own, std::optional<ShmRegion>* peer) {
  const std::vector<std::string> addresses =
      bootstrap.all_gather(own == nullptr ? "" : own->address());
  if (own != nullptr && ring.shares_host_with(ring.predecessor)) {
    *peer = ShmRegion::open(addresses[static_cast<size_t>(ring.predecessor)]);
  }
  std::vector<bool> verdicts;
  for (const std::string& verdict : bootstrap.all_gather(*peer ? "mapped" : "no")) {
    verdicts.push_back(verdict == "mapped");
  }
  return verdicts;
}

/// Memory that a neighbour can map, if one may want to.
void make_window(const Neighbours& ring, const CommunicatorOptions& options, RingLinks& links) {
  if (options.transport != TransportChoice::kSocket &&
      (ring.shares_host_with(ring.successor) || ring.shares_host_with(ring.predecessor))) {
    auto own = std::make_shared<ShmRegion>(ShmRegion::create(options.window_elements));
    links.window = {own->window(), options.window_elements};
    links.shared = std::move(own);
  } else {
    links.plain = CpuBuffer<float>(options.window_elements);
    links.window = links.plain.view();
  }
}

/// The edges that are not there yet. Collective among all ranks: each takes part in the exchange of
/// addresses.
void connect_sockets(Bootstrap& bootstrap, const Neighbours& ring, const std::string& bind_address,
                     const CpuView<float> window, RingEdges& edges) {
  ConnectOptions options;
  options.purpose = Purpose::kRing;
  options.bind_address = bind_address;
  if (!edges.send) {
    options.connect_to = {ring.successor};
  }
  if (!edges.recv) {
    options.accept_from = {ring.predecessor};
  }
  Connections made = connect_ranks(bootstrap, ring.peers, options);
  if (!edges.send) {
    edges.send = make_socket_send_edge(std::move(made.connected.at(ring.successor)), window,
                                       ring.path_to(ring.successor));
  }
  if (!edges.recv) {
    edges.recv = make_socket_recv_edge(std::move(made.accepted.at(ring.predecessor)), window,
                                       ring.path_to(ring.predecessor));
  }
}

}  // namespace

RingLinks connect_ring(Bootstrap& bootstrap, const PeerTable& peers,
                       const CommunicatorOptions& options) {
  LOCKSTEP_CHECK(options.ring_lanes >= 1 && options.ring_lanes <= kMostRingLanes, "{} lanes",
                 options.ring_lanes);
  RingLinks links;
  if (bootstrap.world_size() == 1) {
    links.name = "none";
    links.plain = CpuBuffer<float>(options.window_elements);
    links.window = links.plain.view();
    return links;
  }
  check_options(bootstrap, options);
  const Neighbours ring(bootstrap, peers);
  make_window(ring, options, links);
  std::optional<ShmRegion> peer;
  const std::vector<bool> maps = map_predecessors(bootstrap, ring, links.shared.get(), &peer);
  const std::vector<TransportKind> edges = select_transports(peers, options.transport, maps);
  links.name = transport_names(edges);

  const bool send_shm = edges[static_cast<size_t>(ring.rank)] == TransportKind::kShm;
  const bool recv_shm = edges[static_cast<size_t>(ring.predecessor)] == TransportKind::kShm;
  const bool write_through = bootstrap.world_size() == 2 && send_shm && recv_shm;
  if (write_through) {
    links.pace.groups_ahead = 0;
  } else if (bootstrap.world_size() == 2 && !send_shm && !recv_shm) {
    links.pace.segment_elements = kSocketSegmentElements;
  }
  const auto from = recv_shm ? std::make_shared<const ShmRegion>(*std::move(peer)) : nullptr;
  for (int lane = 0; lane < options.ring_lanes; ++lane) {
    RingEdges& edge = links.lanes.emplace_back();
    if (send_shm) {
      edge.send = make_shm_send_edge(links.shared, lane, write_through);
    }
    if (recv_shm) {
      edge.recv = make_shm_recv_edge(links.shared, from, lane, write_through);
    }
    if (links.name != "shm") {
      connect_sockets(bootstrap, ring, options.bind_address, links.window, edge);
    }
  }
  return links;
}

}  // namespace lockstep
