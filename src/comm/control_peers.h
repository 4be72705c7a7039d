#pragma once

#include <map>
#include <memory>

#include "comm/bootstrap.h"
#include "comm/control_link.h"
#include "comm/control_plane.h"
#include "comm/peer_table.h"
#include "comm/status_page.h"
#include "core/base/clock.h"
#include "core/base/file.h"

namespace lockstep {

/// Another rank, as the control thread knows it.
struct ControlPeer {
  PeerInfo info;
  UniqueFd socket;  ///< until there is a link
  std::unique_ptr<ControlLink> link;
  std::unique_ptr<const StatusPage> page;  ///< of a rank of this host
  RankStatus heard;                        ///< by its last heartbeat
  Clock::duration silence{};               ///< since the last message came

  RankStatus status() const { return page ? page->read() : heard; }
};

/// Those to which this rank has a link.
struct ControlPeers {
  /// By rank. Rank 0: all others; others: rank 0.
  std::map<int, ControlPeer> linked;
  std::unique_ptr<const StatusPage> hosts_page;  ///< of this host's first rank; null: of this rank

  void send(const wire::Control& message);
  /// Nothing more will be sent.
  void end();
  bool closed() const;
  /// Sends a heartbeat to those to whom nothing is on its way, and counts time in which this
  /// process ran as their silence. One that was silent for `limit`, or null.
  const ControlPeer* beat(const wire::Control& heartbeat, Clock::duration ran,
                          Clock::duration limit);
};

/// Connects every rank with rank 0, by sockets without links yet; `own` becomes visible to ranks of
/// this host. Collective. Throws as connect_ranks.
ControlPeers connect_control(Bootstrap& bootstrap, const PeerTable& peers,
                             const ControlOptions& options, const StatusPage& own);

}  // namespace lockstep
