#pragma once

#include <memory>
#include <string>

#include "comm/bootstrap.h"
#include "comm/communicator.h"
#include "comm/control_plane.h"
#include "comm/peer_table.h"
#include "core/base/error.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// How ranges of a window in GPU memory are summed over the ranks: what a Communicator<CudaDevice>
/// of several ranks is made of. The calls enqueue work, which may be captured into a graph; the
/// rules about ranges and order are the communicator's.
class GpuTransport {
 public:
  GpuTransport() = default;
  /// Waits for the GPU. Graphs that captured sums are gone before.
  virtual ~GpuTransport() = default;
  GpuTransport(const GpuTransport&) = delete;
  GpuTransport& operator=(const GpuTransport&) = delete;
  GpuTransport(GpuTransport&&) = delete;
  GpuTransport& operator=(GpuTransport&&) = delete;

  virtual CudaView<float> window() = 0;
  /// The sum of `range`, behind everything on `stream` so far and beside what follows there.
  virtual void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad load) = 0;
  /// Whether reduce_scatter and all_gather are to be had; else they throw InternalError.
  virtual bool has_shards() const { return false; }
  /// As all_reduce, of the elements that this rank owns alone.
  virtual void reduce_scatter(CudaStream& /*stream*/, Range /*range*/, int /*bucket*/,
                              SumLoad /*load*/) {
    throw InternalError("{} has no reduce-scatter", name());
  }
  /// As all_reduce, but what the owner of an element has takes the place of the sum.
  virtual void all_gather(CudaStream& /*stream*/, Range /*range*/, int /*bucket*/,
                          SumLoad /*load*/) {
    throw InternalError("{} has no all-gather", name());
  }
  /// What follows on `stream` comes after all sums so far, of which there is at least one.
  virtual void finish(CudaStream& stream) = 0;
  /// Throws the first cause when a sum that the GPU has passed was none.
  virtual void throw_if_failed() = 0;
  /// Seconds that sums were under way since the last call.
  virtual double take_seconds() = 0;
  virtual std::string name() const = 0;
};

/// Any hosts: copies to the host, sums there by the ring of the CPU, over the edges that
/// `options.transport` allows, and copies back. Collective.
std::unique_ptr<GpuTransport> make_host_ring(Bootstrap& bootstrap, const PeerTable& peers,
                                             ControlPlane& control,
                                             const CommunicatorOptions& options);

/// Ranks of one host whose GPUs are proven to reach each other's memory: one kernel a sum, or
/// between two that compute a copy, which is added when they are done. Throws as PeerAllReduce.
/// Collective.
std::unique_ptr<GpuTransport> make_peer(Bootstrap& bootstrap, const PeerTable& peers,
                                        ControlPlane& control, const CommunicatorOptions& options);

/// Two ranks of a host: both copy what they have to host memory that the other GPU reads. Null, on
/// both ranks, when one cannot map the other's memory. Collective.
std::unique_ptr<GpuTransport> make_staged(Bootstrap& bootstrap, const PeerTable& peers,
                                          ControlPlane& control,
                                          const CommunicatorOptions& options);

/// Any hosts, a GPU for each rank: NVIDIA's NCCL, which knows InfiniBand. Throws as Nccl.
/// Collective.
std::unique_ptr<GpuTransport> make_nccl(Bootstrap& bootstrap, const PeerTable& peers,
                                        ControlPlane& control, const CommunicatorOptions& options);

}  // namespace lockstep
