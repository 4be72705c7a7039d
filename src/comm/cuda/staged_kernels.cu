// The steps between the copies of a sum by copy engines.

#include <cuda_runtime.h>

#include "comm/cuda/peer_sum.cuh"
#include "comm/cuda/staged_kernels.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

__global__ void open_kernel(PeerSum sum) {
  SumRecord record(sum);
  record.begin();
  record.compare();
}

__global__ void meet_kernel(PeerSum sum) {
  uint32_t& meetings = sum.counts->meetings[0];
  const uint32_t count = meetings + 1;
  if (sum.counts->ended == 0 && meet(sum, &BlockFlags::entered, count) && threadIdx.x == 0) {
    meetings = count;
  }
}

__global__ void close_kernel(PeerSum sum) {
  if (sum.counts->ended == 0) {
    SumRecord(sum).end();
  }
}

void launch(void (*kernel)(PeerSum), CUstream_st* stream, const PeerSum& sum) {
  kernel<<<1, 32, 0, stream>>>(sum);
  check_cuda(cudaGetLastError(), "enqueueing a step of an all-reduce through the host");
}

}  // namespace

void launch_open(CUstream_st* stream, const PeerSum& sum) {
  launch(open_kernel, stream, sum);
}

void launch_meet(CUstream_st* stream, const PeerSum& sum) {
  launch(meet_kernel, stream, sum);
}

void launch_close(CUstream_st* stream, const PeerSum& sum) {
  launch(close_kernel, stream, sum);
}

}  // namespace lockstep
