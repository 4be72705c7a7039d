// Each rank stores what it has in its own segments into the windows of all others.

#include <cuda_runtime.h>

#include "comm/cuda/peer_kernels.h"
#include "comm/cuda/peer_windows.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

// share: as owned_share. kRanks: as sum.ranks; 0: any.
template <int kRanks>
__global__ void __launch_bounds__(kPeerThreads, 1) all_gather_kernel(PeerSum sum, Range share) {
  // The first meeting is for those who still read the old contents of their window.
  between_meetings(sum, [&] {
    const int ranks = kRanks == 0 ? sum.ranks : kRanks;
    const ArenaShard shard{sum.rank, ranks};
    const float* window = sum.windows[sum.rank];
    for_each_batch(share, [&](const Batch& batch) {
      BatchPacks own;
#pragma unroll
      for (int i = 0; i < Batch::kPacks; ++i) {
        if (batch.has(i)) {
          const int64_t pack = owned_pack(shard, batch.at(i));
          own[i] = *reinterpret_cast<const Pack*>(window + pack * kPackElements);
        }
      }
      // Each rank begins with another one, so that no link has to take everything at once.
#pragma unroll(kRanks == 0 ? 1 : kRanks)
      for (int step = 1; step < ranks; ++step) {
        float* theirs = sum.windows[(sum.rank + step) % ranks];
#pragma unroll
        for (int i = 0; i < Batch::kPacks; ++i) {
          if (batch.has(i)) {
            store_pack(theirs, owned_pack(shard, batch.at(i)), sum.range, own[i]);
          }
        }
      }
    });
  });
}

}  // namespace

void launch_all_gather(CudaStream& stream, const PeerSum& sum, int blocks) {
  const auto kernel = sum.ranks == 2 ? all_gather_kernel<2> : all_gather_kernel<0>;
  kernel<<<static_cast<unsigned>(blocks), kPeerThreads, 0, stream.handle()>>>(sum,
                                                                              owned_share(sum));
  check_cuda(cudaGetLastError(), "enqueueing an all-gather over peer access");
}

}  // namespace lockstep
