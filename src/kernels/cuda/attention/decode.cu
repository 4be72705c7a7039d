// One query against a cache. A block has a head, each of its warps every kWarps-th key, with an
// online softmax of its own; the warps' shares are joined at the end.

#include <cuda_runtime.h>

#include <cmath>

#include "core/device/cuda_error.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 16;
constexpr int kKeys = 4;                                    // a warp's keys in flight
constexpr int kShare = static_cast<int>(kMaxHeadDim) / 32;  // elements of a row that a lane has

struct Decode {
  float* out;
  float* k_cache;
  float* v_cache;
  const float* qkv;
  int64_t channels;
  int head_dim;
  int position;
  float scale;
};

// What a warp or a block has seen: the largest score, the sum of exponentials, and their sum of v.
struct Partial {
  float max = -INFINITY;
  float sum = 0;
  float out[kShare] = {};
};

__device__ void take_keys(Partial& partial, const Decode& args, const float (&q)[kShare],
                          int64_t head, int key, int lane) {
  float score[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    score[i] = -INFINITY;
    if (key + i * kWarps <= args.position) {
      const float* k = args.k_cache + (key + i * kWarps) * args.channels + head;
      float dot = 0;
#pragma unroll
      for (int e = 0; e < kShare; ++e) {
        dot = lane + 32 * e < args.head_dim ? fmaf(q[e], k[lane + 32 * e], dot) : dot;
      }
      score[i] = warp_sum(dot) * args.scale;
    }
  }
  float max = partial.max;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    max = fmaxf(max, score[i]);
  }
  const float correction = expf(partial.max - max);
  partial.max = max;
  partial.sum *= correction;
#pragma unroll
  for (int e = 0; e < kShare; ++e) {
    partial.out[e] *= correction;
  }
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    if (key + i * kWarps <= args.position) {
      const float p = expf(score[i] - max);
      const float* v = args.v_cache + (key + i * kWarps) * args.channels + head;
      partial.sum += p;
#pragma unroll
      for (int e = 0; e < kShare; ++e) {
        partial.out[e] =
            lane + 32 * e < args.head_dim ? fmaf(p, v[lane + 32 * e], partial.out[e]) : 0.0F;
      }
    }
  }
}

__global__ void __launch_bounds__(kWarps * 32) decode_kernel(Decode args) {
  __shared__ float maxima[kWarps];
  __shared__ float sums[kWarps];
  __shared__ float outs[kWarps][kMaxHeadDim];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t head = static_cast<int64_t>(blockIdx.x) * args.head_dim;
  const int64_t own = args.position * args.channels + head;
  for (int d = static_cast<int>(threadIdx.x); d < args.head_dim; d += kWarps * 32) {
    args.k_cache[own + d] = args.qkv[args.channels + head + d];
    args.v_cache[own + d] = args.qkv[2 * args.channels + head + d];
  }
  __syncthreads();

  float q[kShare] = {};
#pragma unroll
  for (int e = 0; e < kShare; ++e) {
    q[e] = lane + 32 * e < args.head_dim ? args.qkv[head + lane + 32 * e] : 0.0F;
  }
  Partial partial;
  for (int key = warp; key <= args.position; key += kWarps * kKeys) {
    take_keys(partial, args, q, head, key, lane);
  }
#pragma unroll
  for (int e = 0; e < kShare; ++e) {
    outs[warp][lane + 32 * e] = partial.out[e];
  }
  if (lane == 0) {
    maxima[warp] = partial.max;
    sums[warp] = partial.sum;
  }
  __syncthreads();

  float max = -INFINITY;
  for (int w = 0; w < kWarps; ++w) {
    max = fmaxf(max, maxima[w]);
  }
  for (int d = static_cast<int>(threadIdx.x); d < args.head_dim; d += kWarps * 32) {
    float sum = 0;
    float out = 0;
    for (int w = 0; w < kWarps; ++w) {
      const float weight = expf(maxima[w] - max);
      sum = fmaf(sums[w], weight, sum);
      out = fmaf(outs[w][d], weight, out);
    }
    args.out[head + d] = out / sum;
  }
}

}  // namespace

void decode(CudaStream& stream, const AttentionDecode<CudaDevice>& args) {
  decode_kernel<<<static_cast<unsigned>(args.heads), kWarps * 32, 0, stream.handle()>>>(
      {.out = args.out.data(),
       .k_cache = args.k_cache.data(),
       .v_cache = args.v_cache.data(),
       .qkv = args.qkv.data(),
       .channels = args.heads * args.head_dim,
       .head_dim = static_cast<int>(args.head_dim),
       .position = static_cast<int>(args.position),
       .scale = score_scale(args.head_dim)});
  check_cuda(cudaGetLastError(), "launching attention of one position");
}

}  // namespace lockstep::cuda
