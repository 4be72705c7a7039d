// The sum that goes round a ring, message by message: each rank writes to its successor alone.

#include <cuda_runtime.h>

#include "comm/cuda/peer_kernels.h"
#include "comm/cuda/peer_messages.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

constexpr int kPacks = kMessagePacks;

/// One message: its partial sum comes from the rank after its owner round to the owner, and the
/// whole sum goes round once more. False when a wait was ended. `left`: as receive.
__device__ bool go_round(const PeerSum& sum, WarpChannels& channels, const Message<kPacks>& message,
                         int64_t left) {
  float* window = sum.windows[sum.rank];
  const int before = (sum.rank + sum.ranks - 1) % sum.ranks;
  const int next = (sum.rank + 1) % sum.ranks;
  const int first = message.adding_rank(0, sum.ranks);
  const int step = (sum.rank - first + sum.ranks) % sum.ranks;  // at which this rank adds
  Pack total[kPacks];
  message.load(window, total);
  if (step > 0) {
    Pack partial[kPacks];
    if (!channels.receive(before, message, partial, left + 1)) {
      return false;
    }
    add(total, partial);
  }
  if (!channels.send(next, message, total)) {
    return false;
  }
  const bool owner = step == sum.ranks - 1;
  if (!owner && !channels.receive(before, message, total, left)) {
    return false;
  }
  message.store(window, total);
  return step >= sum.ranks - 2 || channels.send(next, message, total);
}

__global__ void __launch_bounds__(kPeerThreads, 1) ring_kernel(PeerSum sum) {
  SumRecord record(sum);
  record.begin();
  WarpChannels channels(sum, record);
  const Range messages = Message<kPacks>::all_of(sum.range);
  // Each warp takes one message at a time; that many are on their way at once.
  int64_t index = messages.begin + Message<kPacks>::warp();
  for (int64_t left = Message<kPacks>::of_warp(messages); left > 0; --left) {
    // Each of the others may come twice.
    if (!go_round(sum, channels, Message<kPacks>(index, sum.range), 2 * (left - 1))) {
      return;
    }
    index += Message<kPacks>::warps();
  }
  channels.save();
  record.end();
}

}  // namespace

void launch_ring(CudaStream& stream, const PeerSum& sum, int blocks) {
  ring_kernel<<<static_cast<unsigned>(blocks), kPeerThreads, 0, stream.handle()>>>(sum);
  check_cuda(cudaGetLastError(), "enqueueing an all-reduce over peer access");
}

}  // namespace lockstep
