#pragma once

// The online softmax of a warpgroup's 64 x 64 scores.

#include <cmath>

#include "kernels/cuda/attention/online_softmax.cuh"
#include "kernels/cuda/attention/tile_products.cuh"
#include "kernels/cuda/ptx/exp2.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep::cuda {

/// The running softmax of a lane's two rows: as OnlineSoftmax, but the sums that a new maximum
/// scales are still being computed when it is found.
struct TileSoftmax {
  float max[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};         ///< of the lane's own columns
  float correction[2] = {1, 1};  ///< of what was summed before the last take

  /// Products become exponentials; whether there are corrections.
  __device__ bool take(TileSums& s, float scale2) {
    float largest[2] = {s[0], s[2]};
#pragma unroll
    for (int i = 1; i < 32; ++i) {
      largest[i / 2 % 2] = fmaxf(largest[i / 2 % 2], s[i]);
    }
    const bool exceeded = (largest[0] - max[0]) * scale2 > kSoftmaxSlack ||
                          (largest[1] - max[1]) * scale2 > kSoftmaxSlack;
    const bool raised = __any_sync(kAllLanes, exceeded);
    if (raised) {
      raise(largest, scale2);
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int row = i / 2 % 2;
      s[i] = exp2_approx(fmaf(s[i], scale2, -max[row] * scale2));
      sum[row] += s[i];
    }
    return raised;
  }

  __device__ void combine() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sum[row] += __shfl_xor_sync(kAllLanes, sum[row], 1);
      sum[row] += __shfl_xor_sync(kAllLanes, sum[row], 2);
    }
  }

 private:
  __device__ void raise(const float (&largest)[2], float scale2) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float of_row = fmaxf(largest[row], __shfl_xor_sync(kAllLanes, largest[row], 1));
      of_row = fmaxf(of_row, __shfl_xor_sync(kAllLanes, of_row, 2));
      const float to = fmaxf(max[row], of_row);
      correction[row] = exp2_approx((max[row] - to) * scale2);
      max[row] = to;
      sum[row] *= correction[row];
    }
  }
};

}  // namespace lockstep::cuda
