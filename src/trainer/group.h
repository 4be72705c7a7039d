#pragma once

#include "comm/bootstrap.h"
#include "comm/control_plane.h"
#include "comm/peer_table.h"

namespace lockstep {

/// The ranks of a run, as this one knows them: connected, nothing computed yet.
struct Group {
  Bootstrap& bootstrap;
  const PeerTable& peers;
  ControlPlane& control;

  int rank() const { return bootstrap.rank(); }
  int world_size() const { return bootstrap.world_size(); }
  bool is_root() const { return rank() == 0; }
  const PeerInfo& self() const { return peers[static_cast<size_t>(rank())]; }
};

}  // namespace lockstep
