#pragma once

// The sum of exponentials that a softmax divides by, taken in one pass over the values.

#include <cfloat>

#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep::cuda {

/// sum = sum over the values seen of exp(value - max). A NaN among them makes the sum one.
struct SoftmaxSum {
  float max = -FLT_MAX;
  float sum = 0;

  /// `value` is at most the maximum.
  __device__ void add(float value) { sum += __expf(value - max); }
  __device__ void raise(float most) {
    if (most > max) {
      sum *= __expf(max - most);
      max = most;
    }
  }

  /// Adds the first `count` of a pack's values, which may be none or more than it has.
  template <int kWidth>
  __device__ void add(const Pack<kWidth>& values, int count) {
    if (count >= kWidth) {
      float most = values[0];
      for_each_lane<kWidth>([&](int i) { most = fmaxf(most, values[i]); });
      raise(most);
      for_each_lane<kWidth>([&](int i) { add(values[i]); });
      return;
    }
    for_each_lane<kWidth>([&](int i) {
      if (i < count) {
        raise(values[i]);
        add(values[i]);
      }
    });
  }

  __device__ void merge(float other_max, float other_sum) {
    const float most = fmaxf(max, other_max);
    sum = sum * __expf(max - most) + other_sum * __expf(other_max - most);
    max = most;
  }

  /// The log of the sum of the values' exponentials.
  __device__ float log() const { return max + logf(sum); }
};

/// Merges the lanes' sums; the same bits on every lane.
__device__ inline SoftmaxSum warp_merge(SoftmaxSum own) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const float max = __shfl_xor_sync(kAllLanes, own.max, offset);
    const float sum = __shfl_xor_sync(kAllLanes, own.sum, offset);
    own.merge(max, sum);
  }
  return own;
}

/// Merges the sums of a block of kWarps warps; the same bits on every thread.
template <int kWarps>
__device__ SoftmaxSum block_merge(SoftmaxSum own) {
  __shared__ float maxima[kWarps];
  __shared__ float sums[kWarps];
  own = warp_merge(own);
  if (threadIdx.x % 32 == 0) {
    maxima[threadIdx.x / 32] = own.max;
    sums[threadIdx.x / 32] = own.sum;
  }
  __syncthreads();
  SoftmaxSum all = {maxima[0], sums[0]};
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) {
    all.merge(maxima[warp], sums[warp]);
  }
  return all;
}

}  // namespace lockstep::cuda
