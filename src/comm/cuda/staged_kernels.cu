#include <cuda_runtime.h>

#include "comm/cuda/staged_kernels.h"
#include "comm/cuda/wait.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

__global__ void post_kernel(Posted* posted, Posted* flag, uint32_t subject) {
  const auto count = static_cast<uint32_t>(*posted) + 1;
  const auto digest = (static_cast<uint32_t>(*posted >> 32U) ^ subject) * 0x9e3779b1U;
  *posted = static_cast<uint64_t>(digest) << 32U | count;
  post(flag, *posted);
}

__global__ void await_kernel(uint32_t* count, const Posted* flag, WaitLimit limit, int rank,
                             int bucket) {
  wait_for(flag, ++*count, limit, rank, bucket);
}

__global__ void compare_kernel(const Posted* posted, const Posted* flag, CollectiveWords* words,
                               int rank, int bucket) {
  volatile CollectiveWords* shown = words;
  if (seen(flag) != *posted && shown->abort == 0) {
    shown->late_rank = rank;
    shown->late_bucket = bucket;
    shown->disagrees = 1;
    __threadfence_system();
    shown->abort = 1;
  }
}

constexpr int kThreads = 256;
// Of four floats, per thread, all on their way at once; a block is soon done, so that those of
// backward, which it displaces, wait briefly.
constexpr int kVectors = 4;

__device__ float4 sum_of(const float4& a, const float4& b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ __launch_bounds__(kThreads) void add_vectors_kernel(float4* sum, const float4* part,
                                                               int64_t size) {
  const int64_t first = blockIdx.x * int64_t{kThreads * kVectors} + threadIdx.x;
  float4 sums[kVectors];
  float4 parts[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t at = first + i * kThreads;
    if (at < size) {
      sums[i] = sum[at];
      parts[i] = part[at];
    }
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int64_t at = first + i * kThreads;
    if (at < size) {
      sum[at] = sum_of(sums[i], parts[i]);
    }
  }
}

__global__ __launch_bounds__(kThreads) void add_elements_kernel(float* sum, const float* part,
                                                                int64_t size) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i < size) {
    sum[i] += part[i];
  }
}

unsigned blocks_for(int64_t size, int64_t of_block) {
  return static_cast<unsigned>((size + of_block - 1) / of_block);
}

void check_launch() {
  check_cuda(cudaGetLastError(), "launching a kernel of a sum through host memory");
}

}  // namespace

void enqueue_post(CudaStream& stream, Posted* posted, Posted* flag, uint32_t subject) {
  post_kernel<<<1, 1, 0, stream.handle()>>>(posted, flag, subject);
  check_launch();
}

void enqueue_await(CudaStream& stream, uint32_t* count, const Posted* flag, const WaitLimit& limit,
                   int rank, int bucket) {
  await_kernel<<<1, 1, 0, stream.handle()>>>(count, flag, limit, rank, bucket);
  check_launch();
}

void enqueue_compare(CudaStream& stream, const Posted* posted, const Posted* flag,
                     CollectiveWords* words, int rank, int bucket) {
  compare_kernel<<<1, 1, 0, stream.handle()>>>(posted, flag, words, rank, bucket);
  check_launch();
}

void enqueue_add(CudaStream& stream, CudaView<float> sum, CudaView<const float> part) {
  int64_t done = 0;
  if ((reinterpret_cast<uintptr_t>(sum.data()) | reinterpret_cast<uintptr_t>(part.data())) %
          sizeof(float4) ==
      0) {
    const int64_t vectors = sum.size() / 4;
    done = 4 * vectors;
    if (vectors > 0) {
      add_vectors_kernel<<<blocks_for(vectors, kThreads * kVectors), kThreads, 0,
                           stream.handle()>>>(reinterpret_cast<float4*>(sum.data()),
                                              reinterpret_cast<const float4*>(part.data()),
                                              vectors);
      check_launch();
    }
  }
  if (const int64_t rest = sum.size() - done; rest > 0) {
    add_elements_kernel<<<blocks_for(rest, kThreads), kThreads, 0, stream.handle()>>>(
        sum.data() + done, part.data() + done, rest);
    check_launch();
  }
}

}  // namespace lockstep
