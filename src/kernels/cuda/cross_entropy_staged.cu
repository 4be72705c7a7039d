// Loss and its gradient for long rows: a block holds a row in shared memory, so that it is read
// once and written once. As soon as a chunk's gradient is written its place is filled with the next
// row's, so that reading never waits for arithmetic.

#include <cuda_runtime.h>

#include <algorithm>

#include "core/device/cuda_error.h"
#include "kernels/cuda/classifier.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/cuda/ptx/bulk_copy.cuh"
#include "kernels/cuda/ptx/tensor_copy.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 16;
constexpr int kThreads = kWarps * 32;
constexpr int kPacks = 2;                      // of a thread in a chunk
constexpr int kChunk = kThreads * kPacks * 4;  // columns
constexpr int kMostChunks = 16;
constexpr int kMostThreads = 2048;  // of a multiprocessor

/// The row in shared memory, chunk by chunk as it arrives.
class StagedRow {
 public:
  /// By every thread.
  __device__ StagedRow(const Classifier& args, float* values, uint64_t* arrived)
      : args_(args), values_(values), arrived_(arrived) {
    if (threadIdx.x == 0) {
      for (int chunk = 0; chunk < chunks(); ++chunk) {
        init_barrier(barrier(chunk), 1);
      }
      publish_barriers();
      for (int chunk = 0; chunk < chunks(); ++chunk) {
        fetch(blockIdx.x, chunk);
      }
    }
    __syncthreads();
  }

  __device__ int chunks() const { return (args_.columns + kChunk - 1) / kChunk; }
  __device__ float at(int v) const { return values_[v]; }

  /// Starts to read a chunk of a row, if there is such a row. By one thread.
  __device__ void fetch(int64_t row, int chunk) {
    if (row < args_.rows) {
      const int begin = chunk * kChunk;
      const int bytes = min(kChunk, args_.columns - begin) * static_cast<int>(sizeof(float));
      arrive_expecting(barrier(chunk), bytes);
      copy_run(shared_address(values_ + begin), args_.logits + row * args_.columns + begin, bytes,
               barrier(chunk));
    }
  }
  __device__ void wait(int chunk, int parity) { wait_barrier(barrier(chunk), parity); }

  /// body(v, values) for each of the thread's packs of a chunk.
  template <class Body>
  __device__ void for_each_pack(int chunk, Body body) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int v = chunk * kChunk + (i * kThreads + static_cast<int>(threadIdx.x)) * 4;
      if (v < args_.columns) {
        body(v, load_pack<4>(values_ + v));
      }
    }
  }

 private:
  __device__ uint32_t barrier(int chunk) const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(arrived_ + chunk));
  }

  const Classifier& args_;
  float* values_;
  uint64_t* arrived_;
};

__global__ void __launch_bounds__(kThreads) staged_rows_kernel(Classifier args) {
  extern __shared__ __align__(128) float values[];  // a row
  __shared__ uint64_t arrived[kMostChunks];
  StagedRow staged(args, values, arrived);
  int parity = 0;
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const int target = args.targets[row];
    SoftmaxSum own;
    for (int chunk = 0; chunk < staged.chunks(); ++chunk) {
      staged.wait(chunk, parity);
      staged.for_each_pack(
          chunk, [&](int v, const Pack<4>& logits) { own.add<4>(logits, args.vocabulary - v); });
    }
    parity ^= 1;
    const SoftmaxSum all = block_merge<kWarps>(own);
    if (threadIdx.x == 0) {
      args.losses[row] = all.log() - staged.at(target);
    }
    const float inverse = 1.0F / all.sum;
    float* const to = args.logits + row * args.columns;
    for (int chunk = 0; chunk < staged.chunks(); ++chunk) {
      if (args.gradient) {
        staged.for_each_pack(chunk, [&](int v, const Pack<4>& logits) {
          store_pack(to + v, gradient_of(args, logits, all.max, inverse, v, target));
        });
      }
      __syncthreads();  // the chunk has been read
      if (threadIdx.x == 0) {
        staged.fetch(row + gridDim.x, chunk);
      }
    }
  }
}

int64_t shared_bytes(const Classifier& args) {
  return args.columns * static_cast<int64_t>(sizeof(float));
}

// Of a block, beside the row: what is declared in the kernel and what the hardware takes.
constexpr int64_t kOtherSharedBytes = 2048;

}  // namespace

bool can_stage_rows(const CudaFacts& facts, const Classifier& args) {
  return facts.compute_capability == 90 && args.columns % 4 == 0 && all_aligned16(args.logits) &&
         args.columns <= kMostChunks * kChunk &&
         shared_bytes(args) + kOtherSharedBytes <= facts.shared_bytes_per_block;
}

void launch_staged_rows(CudaStream& stream, const Classifier& args) {
  const CudaFacts& facts = stream.facts();
  const auto shared = static_cast<int>(shared_bytes(args));
  check_cuda(
      cudaFuncSetAttribute(staged_rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
      "raising a kernel's shared memory");
  const int64_t resident =
      std::min<int64_t>(kMostThreads / kThreads,
                        facts.shared_bytes_per_multiprocessor / (shared + kOtherSharedBytes));
  const int64_t blocks = std::min(args.rows, resident * facts.multiprocessors);
  staged_rows_kernel<<<static_cast<unsigned>(blocks), kThreads, static_cast<size_t>(shared),
                       stream.handle()>>>(args);
}

}  // namespace lockstep::cuda
