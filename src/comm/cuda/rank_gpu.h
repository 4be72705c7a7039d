#pragma once

#include "comm/bootstrap.h"
#include "comm/peer_table.h"

namespace lockstep {

/// Makes this rank's GPU, as choose_gpus says, the current one. Collective. Throws UnsupportedError
/// without a usable GPU, UsageError as choose_gpus.
void use_rank_gpu(Bootstrap& bootstrap, const PeerTable& peers, bool share);

}  // namespace lockstep
