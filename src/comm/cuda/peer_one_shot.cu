// The sum that everyone computes of everyone's values: one trip over the link.

#include <cuda_runtime.h>

#include "comm/cuda/peer_kernels.h"
#include "comm/cuda/peer_messages.cuh"
#include "core/device/dependent_launch.cuh"

namespace lockstep {
namespace {

template <int kRanks, int kPacks>
__global__ void __launch_bounds__(kPeerThreads, 1) one_shot_kernel(PeerSum sum) {
  const int ranks = kRanks == 0 ? sum.ranks : kRanks;
  float* window = sum.windows[sum.rank];
  const Range messages = Message<kPacks>::all_of(sum.range);
  int64_t index = messages.begin + Message<kPacks>::warp();
  Message<kPacks>(index, sum.range).prefetch(window);
  wait_for_kernel_before();
  allow_dependent_launch();  // now, so that one sum at most is there before its time
  Pack own[kPacks];
  Message<kPacks>(index, sum.range).load(window, own);  // ahead of what has to wait for counts
  SumRecord record(sum);
  record.begin();
  WarpChannels channels(sum, record);
  int64_t left = Message<kPacks>::of_warp(messages);
  while (left > 0) {
    const Message<kPacks> message(index, sum.range);
#pragma unroll(kRanks == 0 ? 1 : kRanks)
    for (int step = 1; step < ranks; ++step) {
      if (!channels.send((sum.rank + step) % ranks, message, own)) {
        return;
      }
    }
    record.compare();
    index += Message<kPacks>::warps();
    --left;
    Pack next[kPacks];
    Message<kPacks>(index, sum.range).load(window, next);
    Pack total[kPacks];
    if (!add_received<kRanks>(channels, message, sum.rank, ranks, own, total, left)) {
      return;
    }
    message.store(window, total);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      own[i] = next[i];
    }
  }
  channels.save();
  record.end();
}

template <int kPacks>
void launch(CudaStream& stream, const PeerSum& sum, int blocks) {
  const auto kernel = sum.ranks == 2 ? one_shot_kernel<2, kPacks> : one_shot_kernel<0, kPacks>;
  // Sums often follow each other: half a microsecond less between them.
  launch_behind(stream, kernel, static_cast<unsigned>(blocks), kPeerThreads, sum);
}

}  // namespace

void launch_one_shot(CudaStream& stream, const PeerSum& sum, int blocks, int message_packs) {
  if (message_packs == 1) {
    launch<1>(stream, sum, blocks);
  } else if (message_packs == 2) {
    launch<2>(stream, sum, blocks);
  } else {
    launch<kMessagePacks>(stream, sum, blocks);
  }
}

}  // namespace lockstep
