// The sum of which each rank is sent its share by all others, adds it, and stores it at everyone.

#include <cuda_runtime.h>

#include "comm/cuda/peer_kernels.h"
#include "comm/cuda/peer_messages.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

constexpr int kPacks = kMessagePacks;

/// The messages from `group` on, one for each rank to add. False when a wait was ended.
template <int kRanks>
__device__ bool exchange(const PeerSum& sum, SumRecord& record, WarpChannels& channels,
                         int64_t group, int64_t end) {
  const int ranks = kRanks == 0 ? sum.ranks : kRanks;
  float* window = sum.windows[sum.rank];
  Pack own[kPacks];
#pragma unroll(kRanks == 0 ? 1 : kRanks)
  for (int step = 1; step < ranks; ++step) {
    const int peer = (sum.rank + step) % ranks;
    const Message<kPacks> message(group + peer, sum.range);
    message.load(window, own);
    if (group + peer < end && !channels.send(peer, message, own)) {
      return false;
    }
  }
  record.compare();
  if (group + sum.rank >= end) {
    return true;
  }
  const Message<kPacks> message(group + sum.rank, sum.range);
  message.load(window, own);
  const int64_t left = end - (group + sum.rank + Message<kPacks>::warps() * ranks);
  Pack total[kPacks];
  if (!add_received<kRanks>(channels, message, sum.rank, ranks, own, total, left)) {
    return false;
  }
  // A rank has read what it has sent: its window may be overwritten there.
#pragma unroll(kRanks == 0 ? 1 : kRanks)
  for (int rank = 0; rank < ranks; ++rank) {
    message.store(sum.windows[rank], total);
  }
  return true;
}

template <int kRanks>
__global__ void __launch_bounds__(kPeerThreads, 1) push_kernel(PeerSum sum) {
  uint32_t& meetings = sum.counts->meetings[blockIdx.x];
  const uint32_t count = meetings + 1;
  SumRecord record(sum);
  record.begin();
  WarpChannels channels(sum, record);
  const int ranks = kRanks == 0 ? sum.ranks : kRanks;
  const Range messages = Message<kPacks>::all_of(sum.range);
  bool going = true;
  for (int64_t group = messages.begin + Message<kPacks>::warp() * ranks;
       going && group < messages.end; group += Message<kPacks>::warps() * ranks) {
    going = exchange<kRanks>(sum, record, channels, group, messages.end);
  }
  record.compare();  // before a wait for warps that may have to hear of it
  if (__syncthreads_and(going ? 1 : 0) == 0) {
    return;
  }
  channels.save();
  // Until everyone has stored what it has added.
  if (meet(sum, &BlockFlags::left, count)) {
    if (threadIdx.x == 0) {
      meetings = count;
    }
    record.end();
  }
}

}  // namespace

void launch_push(CudaStream& stream, const PeerSum& sum, int blocks) {
  const auto kernel = sum.ranks == 2 ? push_kernel<2> : push_kernel<0>;
  kernel<<<static_cast<unsigned>(blocks), kPeerThreads, 0, stream.handle()>>>(sum);
  check_cuda(cudaGetLastError(), "enqueueing an all-reduce over peer access");
}

}  // namespace lockstep
