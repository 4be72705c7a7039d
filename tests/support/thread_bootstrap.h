#pragma once

#include <functional>

#include "comm/bootstrap.h"

namespace lockstep {

/// Runs `body` once per rank, each on a thread of its own with a Bootstrap between them, for tests
/// of several ranks in one process. Rethrows the exception of the rank that failed first; the
/// collectives of the others then throw PeerLostError instead of waiting for it.
void run_ranks(int world_size, const std::function<void(Bootstrap&)>& body);

}  // namespace lockstep
