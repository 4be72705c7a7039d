#include "comm/gpu_transport_select.h"

#include "comm/cuda/peer_words.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

bool two_of_one_host(const PeerTable& peers) {
  return peers.size() == 2 && on_one_host(peers);
}

}  // namespace

std::string peer_problem(const PeerTable& peers, const std::function<PeerVerdict()>& probe) {
  if (peers.size() > static_cast<size_t>(kMostPeerRanks)) {
    return fmt::format("{} ranks are more than {}", peers.size(), kMostPeerRanks);
  }
  const PeerVerdict verdict = probe();
  return verdict.usable ? std::string() : verdict.reason;
}

GpuTransportKind select_gpu_transport(const PeerTable& peers, TransportChoice choice,
                                      const GpuPaths& paths) {
  const bool any = choice == TransportChoice::kAuto;
  if (any || choice == TransportChoice::kPeer) {
    if (paths.peer_problem.empty()) {
      return GpuTransportKind::kPeer;
    }
    if (!any) {
      throw UsageError("--transport peer: {}; use --transport auto", paths.peer_problem);
    }
  }
  if (any || choice == TransportChoice::kStaged) {
    if (two_of_one_host(peers) && paths.maps_host_memory) {
      return GpuTransportKind::kStaged;
    }
    if (!any) {
      throw UsageError(
          "--transport staged serves two ranks that can share memory of one host; use --transport "
          "auto");
    }
  }
  return GpuTransportKind::kHostRing;
}

bool may_use_peers(TransportChoice choice) {
  return choice == TransportChoice::kAuto || choice == TransportChoice::kPeer;
}

void check_copies(const PeerTable& peers, TransportChoice choice, const GpuPaths& paths) {
  if (!two_of_one_host(peers) || !may_use_peers(choice)) {
    throw UsageError("--copy-engines is for two ranks of one host, with --transport auto or peer");
  }
  if (!paths.peer_problem.empty()) {
    throw UsageError("--copy-engines: {}; leave it out", paths.peer_problem);
  }
}

int64_t peer_sum_bytes(const PeerTable& peers, const CommunicatorOptions& options,
                       int64_t window_bytes) {
  const int ranks = static_cast<int>(peers.size());
  if (ranks < 2 || ranks > kMostPeerRanks || !on_one_host(peers) ||
      !may_use_peers(options.transport)) {
    return 0;
  }
  return message_slot_bytes(ranks) + (options.copy_engines ? window_bytes : 0);
}

std::string gpu_transport_name(GpuTransportKind kind, const std::string& ring) {
  switch (kind) {
    case GpuTransportKind::kPeer:
      return "peer";
    case GpuTransportKind::kStaged:
      return "staged";
    case GpuTransportKind::kHostRing:
      return "host:" + ring;
  }
  return "";
}

}  // namespace lockstep
