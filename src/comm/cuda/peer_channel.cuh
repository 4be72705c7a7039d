#pragma once

// Channels from each warp of a grid to the same warp of the other ranks' grids.
//
// A message is data alone: each word of a slot that waits for one holds kNoData, which no sender
// writes, and is data once it holds something else. So neither side waits for a fence or for its
// block, and a message is there after one trip over the link.
//
// Counts say which slot is next, and how many messages the receiver has taken: a slot is written
// again only after it was read and emptied. The counts outlive the kernel, so that one kernel may
// send before the other rank's has begun. Each kernel begins by showing what the ones before it
// have taken; within it, only what the sender will need to hear is shown, since the fence for it
// waits for all that this warp has on its way.

#include "comm/cuda/peer_sum.cuh"

namespace lockstep {

inline constexpr uint32_t kOrdinaryNan = 0x7fffffffU;

/// This warp's channels from and to all other ranks. All lanes call everything together. What
/// returns false has ended a wait: the channels must not be used any more.
class WarpChannels {
 public:
  __device__ WarpChannels(const PeerSum& sum, const SumRecord& record)
      : sum_(sum),
        record_(record),
        slots_(message_slots(sum.ranks)),
        own_(&sum.words[sum.rank]->channels[blockIdx.x][threadIdx.x / 32]),
        lane_(static_cast<int>(threadIdx.x % 32)) {
    ended_ = sum.counts->ended != 0;
    if (lane_ < sum.ranks && lane_ != sum.rank) {
      sent_ = own_->sent[lane_];
      received_ = own_->received[lane_];
      taken_ = *static_cast<volatile uint32_t*>(&own_->taken[lane_]);
      // Without a fence: what earlier kernels have emptied is empty by now.
      if (!ended_) {
        show_taken();
      }
    }
  }
  /// At the end of the kernel.
  __device__ void save() {
    if (lane_ < sum_.ranks && lane_ != sum_.rank) {
      own_->sent[lane_] = sent_;
      own_->received[lane_] = received_;
    }
  }

  /// Pack i of each lane, where `message.has(i)`, which is the same for the receiver's.
  template <int kPacks, class Message>
  __device__ bool send(int peer, const Message& message, const Pack (&packs)[kPacks]) {
    const uint32_t count = __shfl_sync(kAll, sent_, peer);
    if (ended_ || !await_free_slot(peer, count)) {
      return false;
    }
    Pack* slot = slot_of(peer, sum_.rank, count);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (message.has(i)) {
        slot[32 * i] = with_ordinary_nan(packs[i]);
      }
    }
    sent_ += lane_ == peer ? 1U : 0U;
    return true;
  }

  /// `left`: at least as many messages as this kernel receives from the peer after this one.
  template <int kPacks, class Message>
  __device__ bool receive(int peer, const Message& message, Pack (&packs)[kPacks], int64_t left) {
    Pack* slot = slot_of(sum_.rank, peer, __shfl_sync(kAll, received_, peer));
    const uint64_t start = nanoseconds();
    for (int turn = 1;; ++turn) {
      bool all = true;  // a pack that has come stays; before the first turn packs hold nothing
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (message.has(i) && (turn == 1 || !is_data(packs[i]))) {
          packs[i] = load_shared_pack(&slot[32 * i].x);
          all = all && is_data(packs[i]);
        }
      }
      if (__all_sync(kAll, all)) {
        break;
      }
      if (turn % kTurns == 0 && ended(start, peer)) {
        return false;
      }
    }
    const float empty = __uint_as_float(kNoData);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (message.has(i)) {
        slot[32 * i] = make_float4(empty, empty, empty, empty);
      }
    }
    received_ += lane_ == peer ? 1U : 0U;
    if (left > 0) {
      __syncwarp();
      // The sender knows of as many free slots as there are, behind what was shown last. Only if
      // more messages come it waits to hear of others.
      const uint32_t unshown = received_ - shown_;
      if (lane_ == peer && unshown >= slots_ / 2 && unshown + left > slots_) {
        __threadfence_system();
        show_taken();
      }
    }
    return true;
  }

 private:
  static constexpr unsigned kAll = 0xffffffffU;
  static constexpr int kTurns = 1024;  // between looks at the host's memory: about a millisecond

  static __device__ bool is_data(const Pack& pack) {
    return __float_as_uint(pack.x) != kNoData && __float_as_uint(pack.y) != kNoData &&
           __float_as_uint(pack.z) != kNoData && __float_as_uint(pack.w) != kNoData;
  }
  static __device__ float with_ordinary_nan(float value) {
    return __float_as_uint(value) == kNoData ? __uint_as_float(kOrdinaryNan) : value;
  }
  static __device__ Pack with_ordinary_nan(const Pack& pack) {
    return make_float4(with_ordinary_nan(pack.x), with_ordinary_nan(pack.y),
                       with_ordinary_nan(pack.z), with_ordinary_nan(pack.w));
  }

  /// This lane's first pack of the slot of `receiver` that message `count` of `sender` goes to.
  __device__ Pack* slot_of(int receiver, int sender, uint32_t count) const {
    const int channel =
        (static_cast<int>(blockIdx.x) * kPeerWarps + static_cast<int>(threadIdx.x / 32)) *
            (sum_.ranks - 1) +
        (sender < receiver ? sender : sender - 1);
    const int64_t slot = int64_t{channel} * slots_ + count % slots_;
    return reinterpret_cast<Pack*>(sum_.slots[receiver]) + slot * (32 * kMessagePacks) + lane_;
  }

  /// Of lane `peer`, for that peer.
  __device__ void show_taken() {
    shown_ = received_;
    ChannelCounts& theirs = sum_.words[lane_]->channels[blockIdx.x][threadIdx.x / 32];
    *static_cast<volatile uint32_t*>(&theirs.taken[sum_.rank]) = received_;
  }

  __device__ bool await_free_slot(int peer, uint32_t count) {
    const uint64_t start = nanoseconds();
    for (int turn = 1; __shfl_sync(kAll, count - taken_, peer) >= slots_; ++turn) {
      if (lane_ == peer) {
        taken_ = seen(&own_->taken[peer]);
      }
      if (turn % kTurns == 0 && ended(start, peer)) {
        return false;
      }
    }
    return true;
  }

  __device__ bool ended(uint64_t start, int peer) const {
    bool end = false;
    if (lane_ == 0) {
      end = record_.disagrees(peer) || must_end(sum_.limit, start, peer, sum_.bucket);
      if (end) {
        give_up(sum_);
      }
    }
    return __shfl_sync(kAll, end ? 1 : 0, 0) != 0;
  }

  const PeerSum& sum_;
  const SumRecord& record_;
  uint32_t slots_;
  ChannelCounts* own_;
  int lane_;
  bool ended_;  ///< an earlier sum was given up
  // Of lane p, for peer p.
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
  uint32_t shown_ = 0;  ///< of what was received, to the peer
  uint32_t taken_ = 0;  ///< of what was sent
};

}  // namespace lockstep
