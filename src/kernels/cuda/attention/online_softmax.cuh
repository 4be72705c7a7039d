#pragma once

// The softmax of rows that come tile by tile (Milakov and Gimelshein, 2018).

#include <cmath>

#include "kernels/cuda/attention/attention_products.cuh"
#include "kernels/cuda/ptx/exp2.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace lockstep::cuda {

/// Exponentials may reach 2^kSoftmaxSlack before a row's reference is raised: most tiles then raise
/// none, and the sums of 2^20 positions are far from overflowing.
inline constexpr float kSoftmaxSlack = 8;

/// The running softmax of a lane's rows. The sum is of the lane's own columns until the end.
template <AttentionProducts Products>
struct OnlineSoftmax {
  using Scores = typename Products::Scores;
  float max[Products::kRows];
  float sum[Products::kRows];

  __device__ OnlineSoftmax() {
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
      max[i] = -INFINITY;
      sum[i] = 0;
    }
  }

  /// Products q·k become the exponentials of what they lie below the row's reference, `max`. That
  /// is the row's maximum when it was last set; it is set again, and what was summed before scaled
  /// to it, once a product lies so far above that exponentials exceed 2^kSoftmaxSlack. scale2: of
  /// q·k, times log2(e).
  __device__ void take(Scores& s, float scale2, typename Products::Sums& sums) {
    float largest[Products::kRows];
    bool exceeded = false;
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
      largest[i] = s[i][0];
#pragma unroll
      for (int j = 1; j < Products::kColumns; ++j) {
        largest[i] = fmaxf(largest[i], s[i][j]);
      }
      exceeded = exceeded || (largest[i] - max[i]) * scale2 > kSoftmaxSlack;
    }
    if (__any_sync(kAllLanes, exceeded)) {
      raise(largest, scale2, sums);
    }
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
      const float offset = -max[i] * scale2;
#pragma unroll
      for (int j = 0; j < Products::kColumns; ++j) {
        s[i][j] = exp2_approx(fmaf(s[i][j], scale2, offset));
        sum[i] += s[i][j];
      }
    }
  }

  __device__ void reduce_sums() {
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
      sum[i] = Products::reduce_row(sum[i], [](float a, float b) { return a + b; });
    }
  }

 private:
  __device__ void raise(const float (&largest)[Products::kRows], float scale2,
                        typename Products::Sums& sums) {
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
      const float row_largest =
          Products::reduce_row(largest[i], [](float a, float b) { return fmaxf(a, b); });
      const float raised = fmaxf(max[i], row_largest);
      const float correction = exp2_approx((max[i] - raised) * scale2);
      max[i] = raised;
      sum[i] *= correction;
      Products::scale_row(sums, i, correction);
    }
  }
};

}  // namespace lockstep::cuda
