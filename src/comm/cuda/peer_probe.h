#pragma once

#include <cstdint>

#include "comm/bootstrap.h"
#include "comm/cuda/peer_mapping.h"
#include "comm/cuda/probe_kernels.h"
#include "comm/peer_table.h"
#include "comm/peer_verdict.h"

namespace lockstep {

/// Proves whether the GPUs of a host's ranks reach each other's memory, since what the driver says
/// of it and a copy that reads back what it wrote are right on machines where nothing arrives:
/// every ordered pair of ranks passes the stages of ProbeStage, through the mappings that
/// collectives use, and what was written is checked by its owner. Each wait is bounded. Two H200
/// take about 50 milliseconds.
///
/// On the GPU that is current, which ranks may share. Collective; the verdict is the same on all
/// ranks. A pair that fails, or that cannot map memory, is a verdict and no error; TimeoutError
/// when a GPU does not finish.
PeerVerdict probe_peers(Bootstrap& bootstrap, const PeerTable& peers);

/// Memory that the stages behind kMapping need of each rank, zeroed.
inline constexpr int64_t kProbeBytes = kProbeWindowBytes + kLiveBytes + kMarkBytes;

/// Those stages alone, through a mapping of kProbeBytes each.
PeerVerdict probe_mapping(Bootstrap& bootstrap, const PeerTable& peers, PeerMapping& mapping);

}  // namespace lockstep
