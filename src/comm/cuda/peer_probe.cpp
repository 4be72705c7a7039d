#include "comm/cuda/peer_probe.h"

#include <string>

#include "comm/cuda/peer_claims.h"
#include "comm/cuda/peer_memory.h"
#include "comm/cuda/probe_stages.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

class MappedMemory final : public PeerMapping {
 public:
  explicit MappedMemory(const PeerMemory& memory) : memory_(memory) {}
  std::byte* of(int rank) override { return memory_.of(rank); }

 private:
  const PeerMemory& memory_;
};

bool any_failed(const PeerVerdict& verdict) {
  for (const PeerPair& pair : verdict.pairs) {
    if (pair.failed != ProbeStage::kNone) {
      return true;
    }
  }
  return false;
}

}  // namespace

PeerVerdict probe_mapping(Bootstrap& bootstrap, const PeerTable& peers, PeerMapping& mapping) {
  ProbeStages stages(bootstrap, gather_peer_claims(bootstrap, peers), mapping);
  return stages.run();
}

PeerVerdict probe_peers(Bootstrap& bootstrap, const PeerTable& peers) {
  PeerVerdict claims = gather_peer_claims(bootstrap, peers);
  if (any_failed(claims) || bootstrap.world_size() == 1) {
    settle(&claims);
    return claims;
  }
  try {
    PeerMemory memory(bootstrap, peers, kProbeBytes);
    MappedMemory mapping(memory);
    PeerVerdict verdict = ProbeStages(bootstrap, claims, mapping).run();
    memory.leave(bootstrap, [] { return false; });
    return verdict;
  } catch (const UnsupportedError& problem) {
    for (PeerPair& pair : claims.pairs) {
      pair.failed = ProbeStage::kMapping;
    }
    settle(&claims, problem.what());
    return claims;
  }
}

}  // namespace lockstep
