#pragma once

#include "comm/cuda/peer_words.h"
#include "comm/cuda/wait.cuh"
#include "comm/ring_schedule.h"

namespace lockstep {

/// Four floats: what one thread moves with one access. Packs are counted from the begin of the
/// window; the first and the last of a range may be in it in part.
using Pack = float4;
inline constexpr int kPackElements = 4;
static_assert(kSegmentElements % kPackElements == 0, "a pack lies in one segment");

/// The packs that a range has a part in.
inline Range packs_of(Range range) {
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

/// Block-wide: raises this block's flags at all peers to `count`, behind everything that the block
/// has written, and waits for theirs. False when the wait was ended, for all threads alike.
__device__ inline bool meet(const PeerSum& sum, uint32_t (BlockFlags::*flags)[kMostPeerRanks],
                            uint32_t count) {
  const int peer = static_cast<int>(threadIdx.x);
  bool met = true;
  __syncthreads();
  if (peer < sum.ranks && peer != sum.rank) {
    post(&(sum.words[peer]->blocks[blockIdx.x].*flags)[sum.rank], count);
    met = wait_for(&(sum.words[sum.rank]->blocks[blockIdx.x].*flags)[peer], count, sum.limit, peer,
                   sum.bucket);
  }
  return __syncthreads_and(met ? 1 : 0) != 0;
}

/// Shows a sum to the host: its bucket while it runs, its time when it is done. Of the first
/// thread of a grid; for the others it does nothing.
class ShownSum {
 public:
  explicit __device__ ShownSum(const PeerSum& sum) : sum_(sum) {
    if (first_thread()) {
      start_ = nanoseconds();
      static_cast<volatile CollectiveWords*>(sum.limit.words)->bucket = sum.bucket;
    }
  }
  /// Once block 0 has done its part: about when all have.
  __device__ void end() {
    if (first_thread()) {
      volatile CollectiveWords* words = sum_.limit.words;
      uint64_t* busy = &sum_.words[sum_.rank]->busy_ns;
      *busy += nanoseconds() - start_;
      words->busy_ns = *busy;
      words->bucket = -1;
    }
  }

 private:
  static __device__ bool first_thread() { return blockIdx.x == 0 && threadIdx.x == 0; }

  const PeerSum& sum_;
  uint64_t start_ = 0;
};

}  // namespace lockstep
