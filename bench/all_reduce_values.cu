#include <cuda_runtime.h>

#include "all_reduce_input.h"
#include "all_reduce_values.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 264;

__global__ void fill_kernel(float* values, int64_t size, int rank, uint32_t round) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += stride) {
    values[i] = all_reduce_input(static_cast<uint32_t>(i), rank, round);
  }
}

__global__ void count_kernel(unsigned long long* wrong, const float* values, int64_t size,
                             int world_size, uint32_t round) {
  unsigned long long own = 0;
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += stride) {
    float expected = 0;
    for (int rank = 0; rank < world_size; ++rank) {
      expected += all_reduce_input(static_cast<uint32_t>(i), rank, round);
    }
    own += values[i] == expected ? 0 : 1;
  }
  if (own != 0) {
    atomicAdd(wrong, own);
  }
}

}  // namespace

void fill_all_reduce_input(CudaStream& stream, CudaView<float> values, int rank, uint32_t round) {
  fill_kernel<<<kBlocks, kThreads, 0, stream.handle()>>>(values.data(), values.size(), rank, round);
  check_cuda(cudaGetLastError(), "filling the input of an all-reduce");
}

void count_wrong_sums(CudaStream& stream, CudaView<uint64_t> wrong, CudaView<const float> values,
                      int world_size, uint32_t round) {
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  count_kernel<<<kBlocks, kThreads, 0, stream.handle()>>>(
      reinterpret_cast<unsigned long long*>(wrong.data()), values.data(), values.size(), world_size,
      round);
  check_cuda(cudaGetLastError(), "checking the sums of an all-reduce");
}

}  // namespace lockstep
