// Loss and its gradient for long rows: a cluster of blocks copies a row to its shared memory, each
// block a slice, so that it is read once and written once. Several blocks are resident on a
// multiprocessor: while one waits for its slice another writes its gradient.

#include <cuda_runtime.h>

#include <algorithm>

#include "core/device/cuda_error.h"
#include "kernels/cuda/classifier.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/ptx/bulk_copy.cuh"
#include "kernels/cuda/ptx/cluster.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kMostBlocks = 8;  // of a cluster, on every GPU that has them
constexpr int kAlignment = 32;  // of a slice, in floats: a line of the cache

__global__ void __launch_bounds__(kThreads) staged_rows_kernel(Classifier args, int slice) {
  extern __shared__ __align__(128) float staged[];  // (slice)
  __shared__ CopyBarrier barrier;
  __shared__ float share[2];  // the slice's maximum and sum
  const int rank = cluster_rank();
  const int blocks = cluster_size();
  const int64_t row = blockIdx.x / blocks;
  const int begin = rank * slice;
  const int columns = min(slice, args.columns - begin);     // of the slice: at least one pack
  const int symbols = min(slice, args.vocabulary - begin);  // none where it is all padding
  float* const logits = args.logits + row * args.columns + begin;
  if (threadIdx.x == 0) {
    const uint32_t bytes = columns * sizeof(float);
    barrier.arm(bytes);
    barrier.copy(staged, logits, bytes);
  }
  const int target = args.targets[row];
  __syncthreads();
  barrier.wait();

  SoftmaxSum own;
  const int first = static_cast<int>(threadIdx.x) * 4;
#pragma unroll 4
  for (int v = first; v < symbols; v += kThreads * 4) {
    const Pack<4> values = load_pack<4>(staged + v);
    const int count = symbols - v;
    float most = values[0];
    for_each_lane<4>([&](int i) { most = i < count ? fmaxf(most, values[i]) : most; });
    own.raise(most);
    for_each_lane<4>([&](int i) {
      if (i < count) {
        own.add(values[i]);
      }
    });
  }
  own = block_merge<kWarps>(own);
  if (threadIdx.x == 0) {
    share[0] = own.max;
    share[1] = own.sum;
  }
  cluster_arrive();
  cluster_wait();
  SoftmaxSum all;
  for (int block = 0; block < blocks; ++block) {
    all.merge(read_peer(&share[0], block), read_peer(&share[1], block));
  }
  cluster_arrive();  // what the peers have is read

  if (threadIdx.x == 0 && target >= begin && target < begin + columns) {
    args.losses[row] = all.log() - staged[target - begin];
  }
  if (args.gradient) {
    const float inverse = 1.0F / all.sum;
#pragma unroll 4
    for (int v = first; v < columns; v += kThreads * 4) {
      Pack<4> values = load_pack<4>(staged + v);
      for_each_lane<4>([&](int i) {
        values[i] = gradient_of(args, values[i], all.max, inverse, begin + v + i, target);
      });
      store_pack(logits + v, values);
    }
  }
  cluster_wait();  // no block leaves while another may read its share
}

/// How a row is divided: as few blocks as leave room for others on a multiprocessor.
struct Division {
  int blocks = 1;
  int slice = 0;  // columns, a multiple of kAlignment
};

Division divide(const CudaFacts& facts, int columns) {
  const int64_t aim = facts.shared_bytes_per_multiprocessor / 4 - 2048;
  Division division;
  const auto slice_of = [&](int blocks) {
    return (columns + blocks * kAlignment - 1) / (blocks * kAlignment) * kAlignment;
  };
  while (division.blocks < kMostBlocks &&
         slice_of(division.blocks) * static_cast<int64_t>(sizeof(float)) > aim) {
    division.blocks *= 2;
  }
  division.slice = slice_of(division.blocks);
  return division;
}

int64_t shared_bytes(const Division& division) {
  return division.slice * static_cast<int64_t>(sizeof(float));
}

}  // namespace

bool can_stage_rows(const CudaFacts& facts, const Classifier& args) {
  constexpr int64_t kOther = 1024;  // shared memory that is no part of the slice
  return facts.compute_capability >= 90 && args.columns % 4 == 0 && all_aligned16(args.logits) &&
         shared_bytes(divide(facts, args.columns)) + kOther <= facts.shared_bytes_per_block;
}

void launch_staged_rows(CudaStream& stream, const Classifier& args) {
  const Division division = divide(stream.facts(), args.columns);
  const auto shared = static_cast<int>(shared_bytes(division));
  check_cuda(
      cudaFuncSetAttribute(staged_rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
      "raising a kernel's shared memory");
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(division.blocks), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(args.rows * division.blocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = static_cast<size_t>(shared);
  config.stream = stream.handle();
  config.attrs = &cluster;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, staged_rows_kernel, args, division.slice),
             "launching a cross-entropy");
}

}  // namespace lockstep::cuda
