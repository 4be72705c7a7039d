#include "comm/cuda/peer_plan.h"

#include <algorithm>

namespace lockstep {

PeerPlan plan_peer_all_reduce(int ranks, int64_t bytes) {
  // Enough blocks that each thread moves a few packs at once: more of them only wait for each
  // other.
  constexpr int64_t kBytesPerBlock = 32 << 10;
  const int64_t share = bytes / ranks;
  return {PeerAlgorithm::kPull,
          static_cast<int>(std::clamp<int64_t>(share / kBytesPerBlock, 1, kMostPeerBlocks))};
}

}  // namespace lockstep
