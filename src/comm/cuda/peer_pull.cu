// The sum of which each rank computes its share and stores it at everyone.

#include <cuda_runtime.h>

#include "comm/cuda/peer_kernels.h"
#include "comm/cuda/peer_sum.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

constexpr int kPacks = 4;  // of a thread at a time

// share: the packs that this rank sums. kRanks: as sum.ranks; 0: any. A sum of two has one order.
template <int kRanks>
__global__ void __launch_bounds__(kPeerThreads, 1) pull_kernel(PeerSum sum, Range share) {
  uint32_t& meetings = sum.counts->meetings[blockIdx.x];
  const uint32_t count = meetings + 1;
  SumRecord record(sum);
  record.begin();
  record.compare();
  if (sum.counts->ended != 0 || !meet(sum, &BlockFlags::entered, count)) {
    return;
  }
  const int ranks = kRanks == 0 ? sum.ranks : kRanks;
  const int64_t stride = int64_t{gridDim.x} * kPeerThreads;
  for (int64_t at = share.begin + int64_t{blockIdx.x} * kPeerThreads + threadIdx.x; at < share.end;
       at += kPacks * stride) {
    Pack sums[kPacks];
#pragma unroll(kRanks == 0 ? 1 : kRanks)
    for (int step = 0; step < ranks; ++step) {
      Pack theirs[kPacks];
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const int64_t pack = at + i * stride;
        if (pack < share.end) {
          const int rank = kRanks == 2 ? step : adding_rank(pack, step, ranks);
          theirs[i] = load_shared_pack(sum.windows[rank] + pack * kPackElements);
        }
      }
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        sums[i] = step == 0 ? theirs[i] : sum_of(sums[i], theirs[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int64_t pack = at + i * stride;
      if (pack < share.end) {
#pragma unroll(kRanks == 0 ? 1 : kRanks)
        for (int rank = 0; rank < ranks; ++rank) {
          store_pack(sum.windows[rank], pack, sum.range, sums[i]);
        }
      }
    }
  }
  // Until everyone has read what it adds, and stored what it has added.
  __syncthreads();
  if (meet(sum, &BlockFlags::left, count)) {
    if (threadIdx.x == 0) {
      meetings = count;
    }
    record.end();
  }
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
