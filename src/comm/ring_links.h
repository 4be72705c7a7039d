#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/communicator.h"
#include "comm/peer_table.h"
#include "comm/ring_schedule.h"
#include "comm/shm_region.h"
#include "comm/transport.h"
#include "core/device/cpu_device.h"

namespace lockstep {

/// A rank's window and its edges of the ring; no edges with one rank.
struct RingLinks {
  CpuView<float> window;
  std::string name;  ///< of the transports in the whole ring
  std::vector<RingEdges> lanes;
  RingPace pace;  ///< what suits the transports

  CpuBuffer<float> plain;                   ///< the window, where no neighbour maps it
  std::shared_ptr<const ShmRegion> shared;  ///< the window, where one does
};

/// Makes this rank's window and connects it to both neighbours, each over the transport that
/// select_transports gives. Collective. Throws RanksDisagreeError when the ranks' window sizes or
/// choices differ, UsageError when a forced transport cannot serve an edge.
RingLinks connect_ring(Bootstrap& bootstrap, const PeerTable& peers,
                       const CommunicatorOptions& options);

}  // namespace lockstep
