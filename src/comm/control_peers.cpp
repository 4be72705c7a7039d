#include "comm/control_peers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "comm/connection.h"

namespace lockstep {

void ControlPeers::send(const wire::Control& message) {
  for (auto& [rank, peer] : linked) {
    peer.link->send(message);
  }
}

void ControlPeers::end() {
  for (auto& [rank, peer] : linked) {
    peer.link->end();
  }
}

bool ControlPeers::closed() const {
  return std::none_of(linked.begin(), linked.end(),
                      [](const auto& entry) { return entry.second.link->open(); });
}

const ControlPeer* ControlPeers::beat(const wire::Control& heartbeat, Clock::duration ran,
                                      Clock::duration limit) {
  const ControlPeer* silent = nullptr;
  for (auto& [rank, peer] : linked) {
    if (peer.link->idle()) {
      peer.link->send(heartbeat);
    }
    peer.silence += ran;
    if (silent == nullptr && peer.silence >= limit) {
      silent = &peer;
    }
  }
  return silent;
}

ControlPeers connect_control(Bootstrap& bootstrap, const PeerTable& peers,
                             const ControlOptions& options, const StatusPage& own) {
  const PeerInfo& self = peers[static_cast<size_t>(bootstrap.rank())];
  ConnectOptions how{.purpose = Purpose::kControl,
                     .bind_address = options.bind_address,
                     .timeout = options.connect_timeout};
  for (const PeerInfo& peer : peers) {
    if (self.rank == 0 && peer.rank != 0) {
      how.accept_from.push_back(peer.rank);
    }
  }
  if (self.rank != 0) {
    how.connect_to = {0};
  }
  Connections made = connect_ranks(bootstrap, peers, how);
  made.accepted.merge(made.connected);

  const std::vector<std::string> pages = bootstrap.all_gather(std::to_string(own.fd()));
  const auto page_of = [&](const PeerInfo& peer) {
    return StatusPage::of(peer, std::stoi(pages[static_cast<size_t>(peer.rank)]));
  };
  ControlPeers connected;
  if (self.local_rank != 0) {
    connected.hosts_page = page_of(first_of_host(peers, self.host_id));
  }
  for (auto& [rank, socket] : made.accepted) {
    ControlPeer& peer = connected.linked[rank];
    peer.info = peers[static_cast<size_t>(rank)];
    peer.socket = std::move(socket);
    if (peer.info.host_id == self.host_id) {
      peer.page = page_of(peer.info);
    }
  }
  bootstrap.barrier();  // every page is mapped before a rank may leave
  return connected;
}

}  // namespace lockstep
