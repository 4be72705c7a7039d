// Row sums of dout * out, which every block of flash backward reads.

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 8;  // of a row
constexpr int kRows = kThreads / kLanes;

__global__ void __launch_bounds__(kThreads)
    delta_kernel(Heads heads, float* delta, const float* dout, const float* out) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kLanes;
  const bool exists = row < static_cast<int64_t>(heads.count) * heads.time;
  float sum = 0;
  if (exists) {
    const int64_t at =
        heads.offset(static_cast<int>(row / heads.time)) + row % heads.time * heads.stride();
    if (heads.vectorized) {
#pragma unroll 2
      for (int d = lane * 4; d < heads.head_dim; d += kLanes * 4) {
        const float4 a = *reinterpret_cast<const float4*>(dout + at + d);
        const float4 b = *reinterpret_cast<const float4*>(out + at + d);
        sum = fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
      }
    } else {
      for (int d = lane; d < heads.head_dim; d += kLanes) {
        sum = fmaf(dout[at + d], out[at + d], sum);
      }
    }
  }
#pragma unroll
  for (int mask = 1; mask < kLanes; mask *= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, mask);
  }
  if (exists && lane == 0) {
    delta[row] = sum;
  }
}

}  // namespace

void sum_delta(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  const Heads heads = heads_of(args.shape, args.dout.data(), args.out.data());
  const int64_t rows = static_cast<int64_t>(heads.count) * heads.time;
  delta_kernel<<<static_cast<unsigned>((rows + kRows - 1) / kRows), kThreads, 0, stream.handle()>>>(
      heads, args.delta.data(), args.dout.data(), args.out.data());
  check_cuda(cudaGetLastError(), "launching the row sums of attention's gradient");
}

}  // namespace lockstep::cuda
