// Sums over everything, in double and in a fixed order, and the sum of two buffers.

#include <cuda_runtime.h>

#include <algorithm>

#include "core/device/cuda_error.h"
#include "core/device/dependent_launch.cuh"
#include "kernels/check_size.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/pack_sum.cuh"
#include "kernels/cuda/warp_reduce.cuh"
#include "kernels/segment_norms.h"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPacks = 4;              // of a thread at a time
constexpr int64_t kMostBlocks = 1024;  // one partial sum for each thread of the last block

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    partial_sums_kernel(double* partials, const float* x, int64_t size) {
  allow_dependent_launch();
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads * kWidth;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  const double total = block_sum<kWarps>(
      sum_packs<kWidth>(x, first, size, stride, [](double value) { return value; }));
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = total;
  }
}

__global__ void __launch_bounds__(kMostBlocks)
    last_sum_kernel(float* out, const double* partials, int count, double scale) {
  wait_for_kernel_before();
  const int thread = static_cast<int>(threadIdx.x);
  const double total = block_sum<kMostBlocks / 32>(thread < count ? partials[thread] : 0.0);
  if (thread == 0) {
    *out = static_cast<float>(scale * total);
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    add_into_kernel(float* to, const float* from, int64_t size) {
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * kThreads * kPacks * kWidth + threadIdx.x * kWidth;
  Pack<kWidth> a[kPacks];
  Pack<kWidth> b[kPacks];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t at = first + i * kThreads * kWidth;
    if (at < size) {
      a[i] = load_pack<kWidth>(to + at);
      b[i] = load_pack<kWidth>(from + at);
    }
  }
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t at = first + i * kThreads * kWidth;
    if (at < size) {
      for_each_lane<kWidth>([&](int j) { a[i][j] += b[i][j]; });
      store_pack(to + at, a[i]);
    }
  }
}

}  // namespace
}  // namespace cuda

void squared_norm(CudaStream& stream, const SquaredNorm<CudaDevice>& args) {
  const SegmentSums layout{args.x.size()};
  const CudaView<double> sums = stream.scratch<double>(layout.size());
  segment_norms(stream, {.sums = sums, .x = args.x});
  norm_of_segments(stream, {.out = args.out, .sums = sums, .layout = layout});
}

void sum(CudaStream& stream, const Sum<CudaDevice>& args) {
  check_size("sum: out", args.out.size(), 1);
  const CudaView<const float> x = args.x;
  const CudaView<double> partials = stream.scratch<double>(cuda::kMostBlocks);
  int64_t blocks = 0;
  cuda::dispatch_width(x.size() % 4 == 0 && cuda::all_aligned16(x.data()), [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    constexpr int64_t kBlock = cuda::kThreads * kWidth;
    blocks = std::min((x.size() + kBlock - 1) / kBlock, cuda::kMostBlocks);
    if (blocks > 0) {
      cuda::partial_sums_kernel<kWidth>
          <<<static_cast<unsigned>(blocks), cuda::kThreads, 0, stream.handle()>>>(
              partials.data(), x.data(), x.size());
      check_cuda(cudaGetLastError(), "launching a sum");
    }
  });
  launch_behind(stream, cuda::last_sum_kernel, dim3(1), dim3(cuda::kMostBlocks), args.out.data(),
                partials.data(), static_cast<int>(blocks), args.scale);
}

void add_into(CudaStream& stream, CudaView<float> to, CudaView<const float> from) {
  check_size("add_into: from", from.size(), to.size());
  const int64_t size = to.size();
  if (size == 0) {
    return;
  }
  const bool vectorized = size % 4 == 0 && cuda::all_aligned16(to.data(), from.data());
  cuda::dispatch_width(vectorized, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    constexpr int64_t kBlock = cuda::kThreads * cuda::kPacks * kWidth;
    cuda::add_into_kernel<kWidth>
        <<<static_cast<unsigned>((size + kBlock - 1) / kBlock), cuda::kThreads, 0,
           stream.handle()>>>(to.data(), from.data(), size);
  });
  check_cuda(cudaGetLastError(), "launching a sum of buffers");
}

}  // namespace lockstep
