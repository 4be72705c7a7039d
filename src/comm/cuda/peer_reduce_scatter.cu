// Each rank reads everyone's values of its own segments, adds, and stores in its own window alone.

#include <cuda_runtime.h>

#include "comm/cuda/peer_kernels.h"
#include "comm/cuda/peer_windows.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

// share: as owned_share. kRanks: as sum.ranks; 0: any. A sum of two has one order.
template <int kRanks>
__global__ void __launch_bounds__(kPeerThreads, 1) reduce_scatter_kernel(PeerSum sum, Range share) {
  // Nobody reads what another rank stores: the last meeting is for those who change their window
  // behind this kernel.
  between_meetings(sum, [&] {
    const int ranks = kRanks == 0 ? sum.ranks : kRanks;
    const ArenaShard shard{sum.rank, ranks};
    for_each_batch(share, [&](const Batch& batch) {
      const auto from = [&](int step, int i) {
        // As adding_rank, of segments that this rank owns.
        const int rank = kRanks == 2 ? step : (sum.rank + 1 + step) % ranks;
        return sum.windows[rank] + owned_pack(shard, batch.at(i)) * kPackElements;
      };
      BatchPacks sums;
      add_windows<kRanks>(ranks, batch, from, sums);
#pragma unroll
      for (int i = 0; i < Batch::kPacks; ++i) {
        if (batch.has(i)) {
          store_pack(sum.windows[sum.rank], owned_pack(shard, batch.at(i)), sum.range, sums[i]);
        }
      }
    });
  });
}

}  // namespace

void launch_reduce_scatter(CudaStream& stream, const PeerSum& sum, int blocks) {
  const auto kernel = sum.ranks == 2 ? reduce_scatter_kernel<2> : reduce_scatter_kernel<0>;
  kernel<<<static_cast<unsigned>(blocks), kPeerThreads, 0, stream.handle()>>>(sum,
                                                                              owned_share(sum));
  check_cuda(cudaGetLastError(), "enqueueing a reduce-scatter over peer access");
}

}  // namespace lockstep
