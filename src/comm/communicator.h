#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/bootstrap.h"
#include "comm/control_plane.h"
#include "comm/peer_table.h"
#include "comm/sum_load.h"
#include "core/base/range.h"
#include "core/device/cpu_device.h"

namespace lockstep {

/// kPeer, kStaged and kNccl are for windows in GPU memory, kNccl only when asked for; the others
/// name edges of the ring of the CPU, by which such a window is summed too.
enum class TransportChoice : uint8_t { kAuto, kPeer, kStaged, kShm, kSocket, kNccl };

struct CommunicatorOptions {
  TransportChoice transport = TransportChoice::kAuto;
  std::chrono::milliseconds collective_timeout{
      120000};                  ///< for a peer that lives but does not come
  int64_t window_elements = 0;  ///< floats of the window
  std::string bind_address;     ///< as ControlOptions
  /// Rings of the CPU beside each other, at most kMostRingLanes: all but the first have a thread of
  /// their own. The same on all ranks.
  int ring_lanes = 1;
  /// Of two GPUs over peer access, other groups of GPUs throw UsageError: copy engines move large
  /// sums beside other work, and take as much memory as the window. The same on all ranks; one rank
  /// alone and CPUs ignore it.
  bool copy_engines = false;
};

/// What the collectives of a step cost. Time in finish() counts in both, so that exposed <= total;
/// hidden = total - exposed.
struct CommTimes {
  /// The comm thread was at work, or the stream waited; of sums by copies beside backward, what
  /// they would take on an idle link.
  double total_seconds = 0;
  double exposed_seconds = 0;  ///< the stream waited in finish(); 0 where the host cannot tell
};

/// Sums over all ranks, in place, of ranges of one window: memory that is registered once for life,
/// so that a neighbour on the same host can read it directly. The window holds the gradient arena
/// and whatever else ranks sum or gather.
///
/// Collectives run in the order of their calls, which must be the same on all ranks, on a thread of
/// its own, while the caller computes. The order of additions depends on an element's absolute
/// position in the window and the number of ranks only: every rank, every transport and every
/// division into ranges gives the same bits. Every call throws the first cause once the run is
/// aborted, TimeoutError past the collective timeout, and RanksDisagreeError when ranks call
/// different collectives. On a device that runs beside the host a failure comes to light later:
/// what was summed may be used once a take_times() behind it, in stream order, has thrown nothing.
///
/// NCCL keeps less of this: among more than two ranks it adds in an order of its own, which the
/// ranges, the GPUs and its version decide; ranks that call different collectives get wrong sums or
/// wait past the timeout; and of more than two ranks it does not tell which is late.
template <class Device>
class Communicator;

template <>
class Communicator<CpuDevice> {
 public:
  /// Connects the ring. Collective. Throws UsageError when a forced transport cannot serve an edge.
  Communicator(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
               const CommunicatorOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Communicator(Communicator&&) = delete;
  Communicator& operator=(Communicator&&) = delete;

  CpuView<float> window();

  /// Starts the sum of `range` once everything on `stream` so far is done; returns at once. The
  /// range must not be touched before finish(). `bucket` names it in messages.
  void all_reduce(CpuStream& stream, Range range, int bucket, SumLoad load = SumLoad::kBeside);
  /// As all_reduce, but only the elements of the range that this rank owns (ArenaShard of the
  /// window) hold the sum afterwards, to the same bits; the others hold nothing of use.
  void reduce_scatter(CpuStream& stream, Range range, int bucket, SumLoad load = SumLoad::kBeside);
  /// As all_reduce, but every element of the range gets the bits that its owner has.
  void all_gather(CpuStream& stream, Range range, int bucket, SumLoad load = SumLoad::kBeside);
  /// Everything on `stream` from here on comes after all collectives started so far.
  void finish(CpuStream& stream);

  /// Since the last call.
  CommTimes take_times();

  /// "shm", "socket", or "shm+socket" for a ring of both.
  std::string transport_name() const;
  /// Whether reduce_scatter and all_gather are to be had.
  static constexpr bool has_shards() { return true; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
