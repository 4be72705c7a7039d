#pragma once

#include "comm/cuda/peer_channel.cuh"

namespace lockstep {

/// What one message holds of a range: pack i of a lane is pack at(i) of the window. Messages are
/// counted from the begin of the window, so that each lies in one segment and has one owner.
template <int kPacks>
class Message {
 public:
  static constexpr int64_t kSize = 32 * kPacks;  ///< packs

  /// Those that hold a part of the range.
  static __device__ Range all_of(Range range) {
    const Range packs = packs_of(range);
    return {packs.begin / kSize, (packs.end + kSize - 1) / kSize};
  }
  /// Of the grid's warps, counted so that the first ones are in different blocks.
  static __device__ int64_t warp() { return int64_t{threadIdx.x / 32} * gridDim.x + blockIdx.x; }
  static __device__ int64_t warps() { return int64_t{blockDim.x / 32} * gridDim.x; }
  /// How many of `messages` are this warp's, where warps take them in turn.
  static __device__ int64_t of_warp(Range messages) {
    return (messages.size() - warp() + warps() - 1) / warps();
  }

  __device__ Message(int64_t index, Range range)
      : index_(index), range_(range), packs_(packs_of(range)) {}

  __device__ int64_t at(int i) const { return index_ * kSize + 32 * i + threadIdx.x % 32; }
  __device__ bool has(int i) const { return at(i) >= packs_.begin && at(i) < packs_.end; }

  /// Has the caches hold what load() will read. Changes no memory: may be called ahead of a wait
  /// for who writes it.
  __device__ void prefetch(const float* window) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (has(i)) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(window + at(i) * kPackElements));
      }
    }
  }
  __device__ void load(const float* window, Pack (&packs)[kPacks]) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (has(i)) {
        packs[i] = *reinterpret_cast<const Pack*>(window + at(i) * kPackElements);
      }
    }
  }
  __device__ void store(float* window, const Pack (&packs)[kPacks]) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (has(i)) {
        store_pack(window, at(i), range_, packs[i]);
      }
    }
  }

  /// The `step`-th rank to add its values.
  __device__ int adding_rank(int step, int ranks) const {
    return lockstep::adding_rank(index_ * kSize, step, ranks);
  }

 private:
  int64_t index_;
  Range range_;
  Range packs_;
};

template <int kPacks>
__device__ void add(Pack (&sums)[kPacks], const Pack (&packs)[kPacks]) {
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    sums[i] = sum_of(sums[i], packs[i]);
  }
}

/// Adds, in their order, what the other ranks have sent to the rank's own values; false when a wait
/// was ended. kRanks: as ranks; 0: any. A sum of two has one order. `left`: as receive.
template <int kRanks, int kPacks>
__device__ bool add_received(WarpChannels& channels, const Message<kPacks>& message, int rank,
                             int ranks, Pack (&own)[kPacks], Pack (&total)[kPacks], int64_t left) {
  if constexpr (kRanks == 2) {
    if (!channels.receive(1 - rank, message, total, left)) {
      return false;
    }
    add(total, own);
  } else {
#pragma unroll 1
    for (int step = 0; step < ranks; ++step) {
      const int from = message.adding_rank(step, ranks);
      Pack theirs[kPacks];
      if (from != rank && !channels.receive(from, message, theirs, left)) {
        return false;
      }
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const Pack value = from == rank ? own[i] : theirs[i];
        total[i] = step == 0 ? value : sum_of(total[i], value);
      }
    }
  }
  return true;
}

}  // namespace lockstep
