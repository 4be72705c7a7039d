#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/communicator.h"
#include "comm/peer_table.h"
#include "comm/peer_verdict.h"

namespace lockstep {

/// What sums the windows of several ranks in GPU memory, if it is not NCCL; the fastest first.
enum class GpuTransportKind : uint8_t {
  kPeer,      ///< kernels and copies that use the other GPUs' memory
  kStaged,    ///< two ranks, through memory of their host
  kHostRing,  ///< the ring of the CPU
};

/// What decides between them, the same on all ranks.
struct GpuPaths {
  std::string peer_problem;      ///< why not kPeer; empty: it serves
  bool maps_host_memory = true;  ///< two ranks of a host map each other's, as far as was tried
};

/// Why ranks cannot sum over peer access; empty when they can. `probe` is not called for more ranks
/// than the kernels are for.
std::string peer_problem(const PeerTable& peers, const std::function<PeerVerdict()>& probe);

/// The fastest that serves all ranks, or the one that is asked for. Pure. Throws UsageError when
/// that cannot serve them.
GpuTransportKind select_gpu_transport(const PeerTable& peers, TransportChoice choice,
                                      const GpuPaths& paths);

/// Whether ranks that sum over `choice` use peer access where they can.
bool may_use_peers(TransportChoice choice);

/// Throws UsageError where ranks that sum over `choice` cannot send each other gradients by copies,
/// as far as is known. Pure.
void check_copies(const PeerTable& peers, TransportChoice choice, const GpuPaths& paths = {});

/// What a rank's sums over peer access take of its GPU's memory besides a window of `window_bytes`;
/// 0 where they cannot go over it, as far as is known before it is tried. Pure.
int64_t peer_sum_bytes(const PeerTable& peers, const CommunicatorOptions& options,
                       int64_t window_bytes);

/// "peer", "staged", or "host:" and the transports of the ring.
std::string gpu_transport_name(GpuTransportKind kind, const std::string& ring = {});

}  // namespace lockstep
