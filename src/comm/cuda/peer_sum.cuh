#pragma once

#include "comm/cuda/peer_words.h"
#include "comm/cuda/sum_digest.h"
#include "comm/cuda/wait.cuh"
#include "comm/ring_schedule.h"

namespace lockstep {

/// Four floats: what one thread moves with one access. Packs are counted from the begin of the
/// window; the first and the last of a range may be in it in part.
using Pack = float4;
static_assert(kSegmentElements % kPackElements == 0, "a pack lies in one segment");

/// The packs that a range has a part in.
__host__ __device__ inline Range packs_of(Range range) {
  return {range.begin / kPackElements, (range.end + kPackElements - 1) / kPackElements};
}

/// Memory that another GPU writes in the course of the kernel: not from a cache of this one's.
__device__ inline Pack load_shared_pack(const float* from) {
  Pack pack;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(pack.x), "=f"(pack.y), "=f"(pack.z), "=f"(pack.w)
               : "l"(from)
               : "memory");
  return pack;
}

/// And memory that another GPU reads in the course of the kernel: not only when it ends.
__device__ inline void store_shared_pack(float* to, const Pack& pack) {
  asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(pack.x),
               "f"(pack.y), "f"(pack.z), "f"(pack.w)
               : "memory");
}

__device__ inline Pack sum_of(const Pack& a, const Pack& b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/// Stores those elements of pack `index` that lie in the range.
__device__ inline void store_pack(float* window, int64_t index, Range range, const Pack& pack) {
  const int64_t begin = index * kPackElements;
  if (begin >= range.begin && begin + kPackElements <= range.end) {
    *reinterpret_cast<Pack*>(window + begin) = pack;
    return;
  }
  const float values[kPackElements] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < kPackElements; ++i) {
    if (begin + i >= range.begin && begin + i < range.end) {
      window[begin + i] = values[i];
    }
  }
}

/// The `step`-th rank to add its values of a pack: from the one after the owner of the pack's
/// segment round to the owner, as ring_schedule.
__device__ inline int adding_rank(int64_t pack, int step, int ranks) {
  const auto segment = static_cast<uint32_t>(pack / (kSegmentElements / kPackElements));
  return static_cast<int>((segment + 1U + static_cast<uint32_t>(step)) %
                          static_cast<uint32_t>(ranks));
}

/// After a wait that was ended: what this rank enqueues from here on is no sum.
__device__ inline void give_up(const PeerSum& sum) {
  sum.counts->ended = 1;
}

/// One block's flags of a kind, at all ranks.
using Flags = uint32_t (BlockFlags::*)[kMostPeerRanks];

/// Block-wide: raises this block's flags at all peers to `count` and waits for theirs. False when
/// the wait was ended, for all threads alike.
__device__ inline bool meet(const PeerSum& sum, Flags flags, uint32_t count) {
  const int peer = static_cast<int>(threadIdx.x);
  bool met = true;
  if (peer < sum.ranks && peer != sum.rank) {
    post(&(sum.words[peer]->blocks[blockIdx.x].*flags)[sum.rank], count);
    met = wait_for(&(sum.words[sum.rank]->blocks[blockIdx.x].*flags)[peer], count, sum.limit, peer,
                   sum.bucket);
    if (!met) {
      give_up(sum);
    }
  }
  return __syncthreads_and(met ? 1 : 0) != 0;
}

/// What one warp of a grid, the last of its first block, does for a sum beside its part of it: it
/// tells the other ranks which sum this is and compares, and shows the host the bucket under way
/// and the time. All threads call everything; the others do nothing.
class SumRecord {
 public:
  explicit __device__ SumRecord(const PeerSum& sum)
      : sum_(sum),
        mine_(blockIdx.x == 0 && threadIdx.x / 32 == blockDim.x / 32 - 1),
        lane_(static_cast<int>(threadIdx.x % 32)) {
    if (mine_) {
      count_ = own().sums + 1;
    }
  }

  __device__ void begin() {
    if (!mine_) {
      return;
    }
    if (is_peer() && own().ended == 0) {
      volatile uint64_t* header = &sum_.words[lane_]->headers[count_ % 2][sum_.rank];
      *header = header_of(sum_, count_);
    }
    if (lane_ == 0) {
      own().start_ns = nanoseconds();
      words()->bucket = sum_.bucket;
    }
  }

  /// Once this rank has sent what the others wait for: waits until they have begun, and compares.
  __device__ void compare() {
    if (mine_ && !compared_ && is_peer()) {
      if (!wait_for(theirs(lane_), count_, sum_.limit, lane_, sum_.bucket) || disagrees(lane_)) {
        give_up(sum_);
      }
    }
    compared_ = true;
  }

  /// At the end of a sum that went well here.
  __device__ void end() {
    compare();
    if (mine_ && lane_ == 0) {
      own().sums = count_;
      own().busy_ns += nanoseconds() - own().start_ns;
      words()->busy_ns = own().busy_ns;
      words()->bucket = -1;
    }
  }

  /// In a long wait: whether `peer` is known to be at another sum. The host then knows it too.
  __device__ bool disagrees(int peer) const {
    if (!mine_) {
      return false;
    }
    const uint64_t header = seen(theirs(peer));
    if (static_cast<uint32_t>(header) != count_ || header == header_of(sum_, count_) ||
        words()->abort != 0) {
      return false;
    }
    report_other_sum(sum_.limit.words, peer, sum_.bucket);
    return true;
  }

 private:
  __device__ bool is_peer() const { return lane_ < sum_.ranks && lane_ != sum_.rank; }
  __device__ PeerCounts& own() const { return *sum_.counts; }
  __device__ const uint64_t* theirs(int peer) const {
    return &sum_.words[sum_.rank]->headers[count_ % 2][peer];
  }
  __device__ volatile CollectiveWords* words() const { return sum_.limit.words; }

  /// The count in the lower half, as wait_for takes it, and what is summed in the upper.
  static __device__ uint64_t header_of(const PeerSum& sum, uint32_t count) {
    return uint64_t{sum_digest(sum.range, sum.bucket, sum.kind)} << 32U | count;
  }

  const PeerSum& sum_;
  bool mine_;
  int lane_;
  bool compared_ = false;
  uint32_t count_ = 0;
};

}  // namespace lockstep
