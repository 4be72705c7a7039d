// The sum of which each rank computes its share and stores it at everyone.

#include <cuda_runtime.h>

#include "comm/cuda/peer_kernels.h"
#include "comm/cuda/peer_windows.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

// share: the packs that this rank sums. kRanks: as sum.ranks; 0: any. A sum of two has one order.
template <int kRanks>
__global__ void __launch_bounds__(kPeerThreads, 1) pull_kernel(PeerSum sum, Range share) {
  between_meetings(sum, [&] {
    const int ranks = kRanks == 0 ? sum.ranks : kRanks;
    for_each_batch(share, [&](const Batch& batch) {
      const auto from = [&](int step, int i) {
        const int64_t pack = batch.at(i);
        const int rank = kRanks == 2 ? step : adding_rank(pack, step, ranks);
        return sum.windows[rank] + pack * kPackElements;
      };
      BatchPacks sums;
      add_windows<kRanks>(ranks, batch, from, sums);
#pragma unroll
      for (int i = 0; i < Batch::kPacks; ++i) {
        if (batch.has(i)) {
#pragma unroll(kRanks == 0 ? 1 : kRanks)
          for (int rank = 0; rank < ranks; ++rank) {
            store_pack(sum.windows[rank], batch.at(i), sum.range, sums[i]);
          }
        }
      }
    });
  });
}

}  // namespace

void launch_pull(CudaStream& stream, const PeerSum& sum, int blocks) {
  const Range packs = packs_of(sum.range);
  const Range share = {packs.begin + packs.size() * sum.rank / sum.ranks,
                       packs.begin + packs.size() * (sum.rank + 1) / sum.ranks};
  const auto kernel = sum.ranks == 2 ? pull_kernel<2> : pull_kernel<0>;
  kernel<<<static_cast<unsigned>(blocks), kPeerThreads, 0, stream.handle()>>>(sum, share);
  check_cuda(cudaGetLastError(), "enqueueing an all-reduce over peer access");
}

}  // namespace lockstep
