#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "comm/bootstrap.h"
#include "comm/cuda/collective_words.h"
#include "comm/cuda/peer_copies.h"
#include "comm/cuda/peer_memory.h"
#include "comm/cuda/peer_plan.h"
#include "comm/cuda/peer_words.h"
#include "comm/peer_table.h"
#include "core/base/range.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// Sums ranges of one window over the GPUs of one host that reach each other's memory, without the
/// host: a sum is kernels and copies on a stream, which may be captured into a graph and run any
/// number of times. Sums run one after another, in the same order on all ranks; so all are enqueued
/// on one stream, or on streams that wait for each other. The halves of a sum are sums here.
///
/// The order of additions depends on an element's position in the window and the number of ranks
/// only, and is that of ring_schedule: every size, every algorithm and the CPU give the same bits.
class PeerAllReduce {
 public:
  /// On the GPU that is current. Collective; at least two and at most kMostPeerRanks ranks, all of
  /// this host. `limit` ends the waits of the kernels; its words outlive this. `copies`, of two
  /// ranks: large sums beside other work are by copy engines, for which memory as large as the
  /// window is taken. Throws as PeerMemory.
  PeerAllReduce(Bootstrap& bootstrap, const PeerTable& peers, int64_t window_elements,
                WaitLimit limit, bool copies);

  /// The end of its use, when this rank has no sum under way: as PeerMemory::leave().
  void leave(Bootstrap& bootstrap, const std::function<bool()>& over) noexcept {
    memory_.leave(bootstrap, over);
  }

  /// Zeroed, 256-byte aligned.
  CudaView<float> window() { return {everyone_.windows[everyone_.rank], window_elements_}; }

  /// Enqueues the sum of `range`, by the plan for `load`. `bucket` names it in messages. The ranks
  /// agree on all arguments. A wait that ended early leaves no sum behind: see CollectiveWatch.
  void all_reduce(CudaStream& stream, Range range, int bucket, SumLoad load = SumLoad::kAlone);

  /// Enqueue one half of a sum each, by kernels: of `range`, reduce_scatter leaves the sum in the
  /// elements that this rank owns (ArenaShard of the window), to the bits of all_reduce, and
  /// nothing of use in the others; all_gather gives every element the bits that its owner has.
  /// Arguments and waits are as all_reduce's. No pushed sum may be under way.
  void reduce_scatter(CudaStream& stream, Range range, int bucket, SumLoad load = SumLoad::kAlone);
  void all_gather(CudaStream& stream, Range range, int bucket, SumLoad load = SumLoad::kAlone);

  /// As all_reduce, where the sum is one by copy engines: it begins behind everything on `stream`
  /// so far, goes on beside what follows there, and is there after finish(). Until then other sums
  /// may be pushed, and run by all_reduce on another stream, but for those of a range that was
  /// pushed. False, with nothing enqueued, where it is one by kernels, which all_reduce enqueues.
  bool push(CudaStream& stream, Range range, int bucket, SumLoad load);
  /// What follows on `stream` comes after all pushed sums, and those by kernels that `stream` is
  /// behind.
  void finish(CudaStream& stream);

  /// What all_reduce and push run from here on in place of the measured choice, for benches and
  /// tests; the same on all ranks.
  void force(const PeerPlan& plan) { forced_ = plan; }

 private:
  void check_range(Range range) const;
  PeerSum sum_for(CollectiveKind kind, Range range, int bucket) const;
  PeerPlan plan_for(Range range, SumLoad load,
                    std::optional<PeerAlgorithm> algorithm = std::nullopt) const;

  int64_t window_elements_;
  PeerMemory memory_;
  PeerSum everyone_{};                ///< all but the range, the bucket and the collective
  std::optional<PeerCopies> copies_;  ///< where they were asked for
  std::optional<PeerPlan> forced_;
};

}  // namespace lockstep
