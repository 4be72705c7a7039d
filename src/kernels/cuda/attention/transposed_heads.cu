#include "core/device/cuda_error.h"
#include "kernels/cuda/attention/transposed_heads.cuh"
#include "kernels/cuda/attention/wgmma_attention.h"
#include "kernels/cuda/warp_reduce.cuh"
#include "kernels/layout/token_order.h"

namespace lockstep::cuda {
namespace {

constexpr int kTokens = 64;
constexpr int kHeadDim = kWgmmaHeadDim;
constexpr int kThreads = 256;
constexpr int kPitch = kHeadDim + 1;
constexpr int kRowChunks = kHeadDim / 4;

/// The sum of `value` over a row's lanes, in each of them.
__device__ float row_sum(float value) {
#pragma unroll
  for (int lanes = 1; lanes < kRowChunks; lanes *= 2) {
    value += __shfl_xor_sync(kAllLanes, value, lanes);
  }
  return value;
}

/// Block (head, run of kTokens, matrix).
__global__ void __launch_bounds__(kThreads)
    transpose_heads_kernel(const __grid_constant__ TransposedHeads args) {
  __shared__ float tile[kTokens * kPitch];
  const Heads& heads = args.heads;
  const int head = static_cast<int>(blockIdx.x);
  const int first = static_cast<int>(blockIdx.y) * kTokens;
  const int matrix = static_cast<int>(blockIdx.z);
  const HeadRows rows = args.from[matrix];
  const int64_t stride = rows.packed ? heads.packed_stride() : heads.stride();
  const float* const from =
      rows.data + (rows.packed ? heads.packed_offset(head) : heads.offset(head)) + first * stride;
  const bool sums = args.out != nullptr && matrix == args.count - 1;
#pragma unroll
  for (int i = 0; i < kTokens * kRowChunks / kThreads; ++i) {
    const int chunk = i * kThreads + static_cast<int>(threadIdx.x);
    const int token = chunk / kRowChunks;
    const int d = chunk % kRowChunks * 4;
    const float4 a = *reinterpret_cast<const float4*>(from + token * stride + d);
    float* const at = tile + token * kPitch + d;
    at[0] = a.x;
    at[1] = a.y;
    at[2] = a.z;
    at[3] = a.w;
    if (sums) {
      const float4 b = *reinterpret_cast<const float4*>(args.out + heads.offset(head) +
                                                        (first + token) * heads.stride() + d);
      const float sum = row_sum(fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, a.w * b.w))));
      if (d == 0) {
        args.delta[static_cast<int64_t>(head) * heads.time + first + token] = sum;
      }
    }
  }
  __syncthreads();
  float* const to =
      args.to + (static_cast<int64_t>(matrix) * heads.count + head) * kHeadDim * heads.time + first;
  constexpr int kTokenChunks = kTokens / 4;
#pragma unroll
  for (int i = 0; i < kHeadDim * kTokenChunks / kThreads; ++i) {
    const int chunk = i * kThreads + static_cast<int>(threadIdx.x);
    const int d = chunk / kTokenChunks;
    const int place = chunk % kTokenChunks * 4;
    const auto value = [&](int next) {
      const int token = place / 8 * 8 + layout::token_at(place % 8 + next);
      return tile[token * kPitch + d];
    };
    *reinterpret_cast<float4*>(to + static_cast<int64_t>(d) * heads.time + place) =
        make_float4(value(0), value(1), value(2), value(3));
  }
}

}  // namespace

void transpose_heads(CudaStream& stream, const TransposedHeads& args) {
  const dim3 grid(static_cast<unsigned>(args.heads.count),
                  static_cast<unsigned>(args.heads.time / kTokens),
                  static_cast<unsigned>(args.count));
  transpose_heads_kernel<<<grid, kThreads, 0, stream.handle()>>>(args);
  check_cuda(cudaGetLastError(), "launching the transposition of heads");
}

}  // namespace lockstep::cuda
