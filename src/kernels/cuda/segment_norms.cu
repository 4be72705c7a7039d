// Sums of squares, segment by segment, and their sum: in double and in a fixed order.

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "core/device/dependent_launch.cuh"
#include "kernels/check_size.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/pack_sum.cuh"
#include "kernels/cuda/warp_reduce.cuh"
#include "kernels/segment_norms.h"

namespace lockstep {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kSumThreads = 1024;

// A block for each segment of the shard.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    segment_norms_kernel(double* sums, const float* x, SegmentSums layout, ArenaShard shard) {
  allow_dependent_launch();
  const int64_t begin = shard.position(int64_t{blockIdx.x} * kSegmentElements);
  const int64_t end = min(begin + kSegmentElements, layout.arena_elements);
  const double total = block_sum<kWarps>(
      sum_packs<kWidth>(x, begin + threadIdx.x * kWidth, end, int64_t{kThreads} * kWidth,
                        [](double value) { return value * value; }));
  if (threadIdx.x == 0) {
    sums[layout.place(begin / kSegmentElements)] = total;
  }
}

__global__ void __launch_bounds__(kSumThreads)
    norm_of_segments_kernel(double* out, const double* sums, SegmentSums layout) {
  wait_for_kernel_before();
  double total = 0;
  for (int64_t segment = threadIdx.x; segment < layout.segments(); segment += kSumThreads) {
    total += sums[layout.place(segment)];
  }
  total = block_sum<kSumThreads / 32>(total);
  if (threadIdx.x == 0) {
    *out = total;
  }
}

}  // namespace
}  // namespace cuda

void segment_norms(CudaStream& stream, const SegmentNorms<CudaDevice>& args) {
  const int64_t size = args.x.size();
  const SegmentSums layout{size, args.shard.ranks};
  check_size("segment_norms: sums", args.sums.size(), layout.size());
  const int64_t blocks = (args.shard.size(size) + kSegmentElements - 1) / kSegmentElements;
  if (blocks == 0) {
    return;
  }
  cuda::dispatch_width(size % 4 == 0 && cuda::all_aligned16(args.x.data()), [&](auto width) {
    cuda::segment_norms_kernel<decltype(width)::value>
        <<<static_cast<unsigned>(blocks), cuda::kThreads, 0, stream.handle()>>>(
            args.sums.data(), args.x.data(), layout, args.shard);
  });
  check_cuda(cudaGetLastError(), "launching sums of squares");
}

void norm_of_segments(CudaStream& stream, const NormOfSegments<CudaDevice>& args) {
  check_size("norm_of_segments: out", args.out.size(), 1);
  check_size("norm_of_segments: sums", args.sums.size(), args.layout.size());
  launch_behind(stream, cuda::norm_of_segments_kernel, dim3(1), dim3(cuda::kSumThreads),
                args.out.data(), args.sums.data(), args.layout);
}

}  // namespace lockstep
