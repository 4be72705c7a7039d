#pragma once

// What the collectives share in which ranks reach into each other's windows, between one meeting at
// which all windows are ready and one at which all are done with them.

#include "comm/cuda/peer_sum.cuh"
#include "core/base/arena_shard.h"

namespace lockstep {

/// The packs that a thread has on their way at a time: number at(i) of a share, where has(i).
class Batch {
 public:
  static constexpr int kPacks = 4;

  __device__ Batch(int64_t first, int64_t stride, int64_t end)
      : first_(first), stride_(stride), end_(end) {}

  __device__ int64_t at(int i) const { return first_ + i * stride_; }
  __device__ bool has(int i) const { return at(i) < end_; }

 private:
  int64_t first_;
  int64_t stride_;
  int64_t end_;
};
using BatchPacks = Pack[Batch::kPacks];

/// Calls `move` with this thread's batches of a share, which the grid divides.
template <class Move>
__device__ __forceinline__ void for_each_batch(Range share, Move move) {
  const int64_t stride = int64_t{gridDim.x} * kPeerThreads;
  for (int64_t first = share.begin + int64_t{blockIdx.x} * kPeerThreads + threadIdx.x;
       first < share.end; first += Batch::kPacks * stride) {
    move(Batch(first, stride, share.end));
  }
}

/// Adds up what the ranks have in a batch: `from(step, i)` is where the `step`-th rank to add has
/// pack i. kRanks: as ranks; 0: any.
template <int kRanks, class From>
__device__ __forceinline__ void add_windows(int ranks, const Batch& batch, From from,
                                            BatchPacks& sums) {
#pragma unroll(kRanks == 0 ? 1 : kRanks)
  for (int step = 0; step < ranks; ++step) {
    BatchPacks theirs;
#pragma unroll
    for (int i = 0; i < Batch::kPacks; ++i) {
      if (batch.has(i)) {
        theirs[i] = load_shared_pack(from(step, i));
      }
    }
#pragma unroll
    for (int i = 0; i < Batch::kPacks; ++i) {
      sums[i] = step == 0 ? theirs[i] : sum_of(sums[i], theirs[i]);
    }
  }
}

/// Calls `work` when all windows are ready for it, and returns when everyone is done with this
/// rank's. Not called once a wait was ended.
template <class Work>
__device__ __forceinline__ void between_meetings(const PeerSum& sum, Work work) {
  uint32_t& meetings = sum.counts->meetings[blockIdx.x];
  const uint32_t count = meetings + 1;
  SumRecord record(sum);
  record.begin();
  record.compare();
  if (sum.counts->ended != 0 || !meet(sum, &BlockFlags::entered, count)) {
    return;
  }
  work();
  // Behind what all threads of the block have read and stored.
  __syncthreads();
  if (meet(sum, &BlockFlags::left, count)) {
    if (threadIdx.x == 0) {
      meetings = count;
    }
    record.end();
  }
}

/// The packs of the range that this rank owns, counted among those that it owns of the window.
inline Range owned_share(const PeerSum& sum) {
  const ArenaShard shard{sum.rank, sum.ranks};
  const Range packs = packs_of(sum.range);
  return {shard.size(packs.begin * kPackElements) / kPackElements,
          shard.size(packs.end * kPackElements) / kPackElements};
}

/// Which pack of the window number `number` of a shard is.
__device__ inline int64_t owned_pack(const ArenaShard& shard, int64_t number) {
  return shard.position(number * kPackElements) / kPackElements;
}

}  // namespace lockstep
