#pragma once

#include "comm/bootstrap.h"
#include "comm/peer_table.h"
#include "comm/peer_verdict.h"

namespace lockstep {

/// A verdict that holds what is known before memory is mapped: which pairs are on one host, and
/// what the driver says of their GPUs; pairs that it denies have failed. Collective; the same on
/// all ranks.
PeerVerdict gather_peer_claims(Bootstrap& bootstrap, const PeerTable& peers);

}  // namespace lockstep
