#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// The window lies in the GPU's memory. Sums are enqueued on the stream as the ops are, and may be
/// captured into a graph with them; what makes them is the GpuTransport that serves all ranks
/// (gpu_transport.h). With one rank nothing is enqueued.
template <>
class Communicator<CudaDevice> {
 public:
  /// On the GPU that is current. Collective. Throws as the CPU's.
  Communicator(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
               const CommunicatorOptions& options);
  /// Waits for the GPU. Graphs that captured sums are gone before.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Communicator(Communicator&&) = delete;
  Communicator& operator=(Communicator&&) = delete;

  CudaView<float> window();

  /// Enqueues the sum of `range` behind everything on `stream` so far, beside what follows there.
  /// The range must not be touched before finish(). `bucket` names it in messages.
  void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad load = SumLoad::kBeside);
  /// As all_reduce, but only the elements of the range that this rank owns (ArenaShard of the
  /// window) hold the sum afterwards, to the same bits; the others hold nothing of use. Only with
  /// has_shards().
  void reduce_scatter(CudaStream& stream, Range range, int bucket, SumLoad load = SumLoad::kBeside);
  /// As all_reduce, but every element of the range gets the bits that its owner has. Only with
  /// has_shards().
  void all_gather(CudaStream& stream, Range range, int bucket, SumLoad load = SumLoad::kBeside);
  /// Everything on `stream` from here on comes after all sums enqueued so far.
  void finish(CudaStream& stream);

  /// Since the last call. Throws the first cause when a sum that the stream has passed failed: what
  /// is behind it in the stream has then computed with ranges that are not summed.
  CommTimes take_times();

  std::string transport_name() const;
  /// Whether reduce_scatter and all_gather are to be had: by one rank alone, over peer access and
  /// by the host ring.
  bool has_shards() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
