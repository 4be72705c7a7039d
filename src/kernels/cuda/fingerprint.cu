#include <cuda_runtime.h>

#include <algorithm>

#include "core/device/cuda_error.h"
#include "core/device/dependent_launch.cuh"
#include "kernels/check_size.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/warp_reduce.cuh"
#include "kernels/fingerprint.h"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kElements = 8;           // of a thread, all on their way at once
constexpr int64_t kMostBlocks = 1024;  // one partial sum for each thread of the last block

using Word = unsigned long long;  // as the shuffles take it

__global__ void __launch_bounds__(kThreads)
    partial_fingerprints_kernel(Word* partials, const float* x, int64_t size) {
  allow_dependent_launch();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  Word sum = 0;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < size;
       at += kElements * stride) {
    float values[kElements];
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const int64_t index = at + i * stride;
      values[i] = index < size ? x[index] : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const int64_t index = at + i * stride;
      sum += index < size ? fingerprint_term(__float_as_uint(values[i]), index) : 0;
    }
  }
  const Word total = block_sum<kThreads / 32>(sum);
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = total;
  }
}

__global__ void __launch_bounds__(kMostBlocks)
    last_fingerprint_kernel(float* pieces, const Word* partials, int count) {
  wait_for_kernel_before();
  const int thread = static_cast<int>(threadIdx.x);
  const Word total = block_sum<kMostBlocks / 32>(thread < count ? partials[thread] : Word{0});
  if (thread < kFingerprintPieces) {
    pieces[thread] = fingerprint_piece(total, thread);
  }
}

}  // namespace
}  // namespace cuda

void fingerprint(CudaStream& stream, const Fingerprint<CudaDevice>& args) {
  check_size("fingerprint: pieces", args.pieces.size(), kFingerprintPieces);
  const CudaView<cuda::Word> partials = stream.scratch<cuda::Word>(cuda::kMostBlocks);
  const int64_t size = args.x.size();
  const auto blocks =
      static_cast<int>(std::min((size + cuda::kThreads - 1) / cuda::kThreads, cuda::kMostBlocks));
  if (blocks > 0) {
    cuda::partial_fingerprints_kernel<<<static_cast<unsigned>(blocks), cuda::kThreads, 0,
                                        stream.handle()>>>(partials.data(), args.x.data(), size);
    check_cuda(cudaGetLastError(), "launching a fingerprint");
  }
  launch_behind(stream, cuda::last_fingerprint_kernel, dim3(1), dim3(cuda::kMostBlocks),
                args.pieces.data(), partials.data(), blocks);
}

}  // namespace lockstep
