#include <cuda_runtime.h>

#include "comm/cuda/staged_kernels.h"
#include "comm/cuda/wait.cuh"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

__global__ void begin_kernel(CollectiveWords* words, uint64_t* start_ns, int bucket) {
  *start_ns = nanoseconds();
  static_cast<volatile CollectiveWords*>(words)->bucket = bucket;
}

__global__ void end_kernel(CollectiveWords* words, const uint64_t* start_ns) {
  volatile CollectiveWords* shown = words;
  shown->busy_ns = shown->busy_ns + (nanoseconds() - *start_ns);
  shown->bucket = -1;
}

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

// Few blocks: the copy engines are the limit, and the multiprocessors have backward to run.
constexpr int kMostBlocks = 32;

__global__ __launch_bounds__(kThreads) void add_kernel(float* sum, const float* part,
                                                       int64_t size) {
  const int64_t first = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  const bool aligned =
      (reinterpret_cast<uintptr_t>(sum) | reinterpret_cast<uintptr_t>(part)) % sizeof(float4) == 0;
  const int64_t vectors = aligned ? size / 4 : 0;
  for (int64_t i = first; i < vectors; i += stride) {
    float4 total = reinterpret_cast<float4*>(sum)[i];
    const float4 more = reinterpret_cast<const float4*>(part)[i];
    total.x += more.x;
    total.y += more.y;
    total.z += more.z;
    total.w += more.w;
    reinterpret_cast<float4*>(sum)[i] = total;
  }
  for (int64_t i = 4 * vectors + first; i < size; i += stride) {
    sum[i] += part[i];
  }
}

void check_launch() {
  check_cuda(cudaGetLastError(), "launching a kernel of a sum through host memory");
}

}  // namespace

void enqueue_begin(CudaStream& stream, CollectiveWords* words, uint64_t* start_ns, int bucket) {
  begin_kernel<<<1, 1, 0, stream.handle()>>>(words, start_ns, bucket);
  check_launch();
}

void enqueue_end(CudaStream& stream, CollectiveWords* words, const uint64_t* start_ns) {
  end_kernel<<<1, 1, 0, stream.handle()>>>(words, start_ns);
  check_launch();
}

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
  const int64_t wanted = (sum.size() + 4 * kThreads - 1) / (4 * kThreads);
  const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
  add_kernel<<<blocks, kThreads, 0, stream.handle()>>>(sum.data(), part.data(), sum.size());
  check_launch();
}

}  // namespace lockstep
