// The sum by one kernel on each of two ranks: each block writes what it has to its mailbox in the
// host, and reads what the other rank's block of the same number has written.

#include <cuda_runtime.h>

#include <algorithm>

#include "comm/cuda/peer_sum.cuh"
#include "comm/cuda/staged_kernels.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

using Packs = Pack[kChunkPacks];

/// What a block moves at a time: pack i of a thread is pack at(i) of the window.
class Chunk {
 public:
  static constexpr int64_t kSize = int64_t{kChunkPacks} * kPeerThreads;  ///< packs

  /// How many hold a part of the range.
  static __host__ __device__ int64_t all_of(Range range) {
    return (packs_of(range).size() + kSize - 1) / kSize;
  }

  __device__ Chunk(int64_t index, Range range)
      : range_(range), first_(packs_of(range).begin + index * kSize + threadIdx.x) {}

  __device__ void load(const float* window, Packs& packs) const {
    for_each(
        [&](int i) { packs[i] = *reinterpret_cast<const Pack*>(window + at(i) * kPackElements); });
  }
  __device__ void store(float* window, const Packs& packs) const {
    for_each([&](int i) { store_pack(window, at(i), range_, packs[i]); });
  }
  __device__ void put(float* mailbox, const Packs& packs) const {
    for_each([&](int i) { store_shared_pack(mailbox + place(i), packs[i]); });
  }
  __device__ void take(const float* mailbox, Packs& packs) const {
    for_each([&](int i) { packs[i] = load_shared_pack(mailbox + place(i)); });
  }

 private:
  __device__ int64_t at(int i) const { return first_ + i * kPeerThreads; }
  static __device__ int place(int i) {
    return (i * kPeerThreads + static_cast<int>(threadIdx.x)) * kPackElements;
  }

  /// Of those packs that hold a part of the range.
  template <class Visit>
  __device__ void for_each(Visit visit) const {
    const int64_t end = packs_of(range_).end;
#pragma unroll
    for (int i = 0; i < kChunkPacks; ++i) {
      if (at(i) < end) {
        visit(i);
      }
    }
  }

  Range range_;
  int64_t first_;
};

__global__ void __launch_bounds__(kPeerThreads, 1)
    exchange_kernel(PeerSum sum, Mailbox* own_mailboxes, const Mailbox* other_mailboxes) {
  float* window = sum.windows[sum.rank];
  Mailbox& own_mailbox = own_mailboxes[blockIdx.x];
  const Mailbox& other_mailbox = other_mailboxes[blockIdx.x];
  Chunk chunk(blockIdx.x, sum.range);
  Packs own;
  chunk.load(window, own);
  SumRecord record(sum);
  record.begin();
  if (sum.counts->ended != 0) {
    return;
  }
  uint32_t& meetings = sum.counts->meetings[blockIdx.x];
  uint32_t count = meetings + 1;
  chunk.put(own_mailbox.values[count % 2], own);
  const int64_t chunks = Chunk::all_of(sum.range);
  for (int64_t index = blockIdx.x; index < chunks; index += gridDim.x) {
    __syncthreads();
    record.compare();  // before a wait that may be for a rank at another sum
    if (!meet(sum, &BlockFlags::entered, count)) {
      return;
    }
    Packs theirs;
    chunk.take(other_mailbox.values[count % 2], theirs);
    // The other rank has read the chunk before this one, since it has come to this meeting.
    const Chunk next(index + gridDim.x, sum.range);
    Packs following;
    next.load(window, following);
    ++count;
    next.put(own_mailbox.values[count % 2], following);
#pragma unroll
    for (int i = 0; i < kChunkPacks; ++i) {
      theirs[i] = sum_of(own[i], theirs[i]);
      own[i] = following[i];
    }
    chunk.store(window, theirs);
    chunk = next;
  }
  if (threadIdx.x == 0) {
    meetings = count - 1;
  }
  record.end();
}

}  // namespace

void launch_exchange(CUstream_st* stream, const PeerSum& sum, Mailbox* own, const Mailbox* other) {
  const auto blocks =
      static_cast<unsigned>(std::min<int64_t>(Chunk::all_of(sum.range), kMostExchangeBlocks));
  exchange_kernel<<<blocks, kPeerThreads, 0, stream>>>(sum, own, other);
  check_cuda(cudaGetLastError(), "enqueueing an all-reduce through the host");
}

}  // namespace lockstep
