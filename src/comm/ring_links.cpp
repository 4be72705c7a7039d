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
  const std::vector<std::string> all = bootstrap.all_gather(
      fmt::format("a window of {} elements and transport choice {}", options.window_elements,
                  static_cast<int>(options.transport)));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw RanksDisagreeError("rank 0 has {}, rank {} has {}", all[0], rank, all[rank]);
    }
  }
}

// Which ranks have mapped the region of the rank before them: this rank's verdict is made here, if
// it has a region at all.
std::vector<bool> map_predecessors(Bootstrap& bootstrap, const ShmRegion* own, int predecessor,
                                   std::optional<ShmRegion>* peer) {
  const std::vector<std::string> addresses =
      bootstrap.all_gather(own == nullptr ? "" : own->address());
  if (own != nullptr) {
    *peer = ShmRegion::open(addresses[static_cast<size_t>(predecessor)]);
  }
  std::vector<bool> verdicts;
  for (const std::string& verdict : bootstrap.all_gather(*peer ? "mapped" : "no")) {
    verdicts.push_back(verdict == "mapped");
  }
  return verdicts;
}

}  // namespace

RingLinks connect_ring(Bootstrap& bootstrap, const PeerTable& peers,
                       const CommunicatorOptions& options) {
  const int world = bootstrap.world_size();
  const int rank = bootstrap.rank();
  RingLinks links;
  if (world == 1) {
    links.name = "none";
    links.plain = CpuBuffer<float>(options.window_elements);
    links.window = links.plain.view();
    return links;
  }
  check_options(bootstrap, options);
  const int successor = (rank + 1) % world;
  const int predecessor = (rank + world - 1) % world;
  const auto shares_host_with = [&](int other) {
    return peers[static_cast<size_t>(other)].host_id == peers[static_cast<size_t>(rank)].host_id;
  };
  const auto path_to = [&](int other) {
    return shares_host_with(other) ? SocketPath::kLoopback : SocketPath::kNetwork;
  };
  if (options.transport != TransportChoice::kSocket &&
      (shares_host_with(successor) || shares_host_with(predecessor))) {
    auto own = std::make_shared<ShmRegion>(ShmRegion::create(options.window_elements));
    links.window = {own->window(), options.window_elements};
    links.shared = std::move(own);
  } else {
    links.plain = CpuBuffer<float>(options.window_elements);
    links.window = links.plain.view();
  }
  std::optional<ShmRegion> peer;
  const std::vector<bool> maps =
      map_predecessors(bootstrap, links.shared.get(), predecessor, &peer);
  const std::vector<TransportKind> edges = select_transports(peers, options.transport, maps);
  links.name = transport_names(edges);

  const bool send_shm = edges[static_cast<size_t>(rank)] == TransportKind::kShm;
  const bool recv_shm = edges[static_cast<size_t>(predecessor)] == TransportKind::kShm;
  const bool write_through = world == 2 && send_shm && recv_shm;
  if (write_through) {
    links.pace.groups_ahead = 0;
  } else if (world == 2 && !send_shm && !recv_shm) {
    links.pace.segment_elements = kSocketSegmentElements;
  }
  if (send_shm) {
    links.send = make_shm_send_edge(links.shared, write_through);
  }
  if (recv_shm) {
    links.recv = make_shm_recv_edge(
        links.shared, std::make_shared<const ShmRegion>(*std::move(peer)), write_through);
  }
  ConnectOptions connect;
  connect.purpose = Purpose::kRing;
  connect.bind_address = options.bind_address;
  if (!send_shm) {
    connect.connect_to = {successor};
  }
  if (!recv_shm) {
    connect.accept_from = {predecessor};
  }
  if (transport_names(edges) != "shm") {
    Connections connections = connect_ranks(bootstrap, peers, connect);
    if (!send_shm) {
      links.send = make_socket_send_edge(std::move(connections.connected.at(successor)),
                                         links.window, path_to(successor));
    }
    if (!recv_shm) {
      links.recv = make_socket_recv_edge(std::move(connections.accepted.at(predecessor)),
                                         links.window, path_to(predecessor));
    }
  }
  return links;
}

}  // namespace lockstep
