#pragma once

// Factors split in two TF32 values each, on mma.sync: products as exact as those of single
// precision, for three instructions in place of one.
//
// With x = x1 + x2, x1 the TF32 value nearest to x, the product is a1 b1 + a1 b2 + a2 b1. What is
// left out, a2 b2 and what tensor cores drop of a2 and b2, is small (layout::kMostLeftOut), and of
// either sign, since the rests are: in a sum it matters less than the rounding of each addition.
//
// Tensor cores truncate their sums. Those of one step of k begin at zero, the small products first,
// and are added to the running ones in single precision, rounded to nearest.
// (H. Ootomo, R. Yokota: Recovering single precision accuracy from Tensor Cores while surpassing
// the FP32 theoretical peak performance, 2022.)

#include "kernels/cuda/gemm/mma.cuh"
#include "kernels/layout/split.h"

namespace lockstep::cuda {

/// The TF32 value nearest to a float, both as bits, and exactly that.
__device__ inline uint32_t upper_part(uint32_t bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  return round_to_tf32(bits);
#else
  return round_to_tf32(bits) & layout::kTf32Mask;  // it leaves what tensor cores drop
#endif
}
__device__ inline uint32_t rest(uint32_t bits) {
  return layout::rest_of(bits, upper_part(bits));
}

template <class Shape, Major kA, Major kB>
class SplitProduct : public WarpProduct<Shape, kA, kB, 2> {
  static constexpr int kPieces = 2;  ///< half as many additions to the running sums as with one
  using Base = WarpProduct<Shape, kA, kB, kPieces>;

 public:
  static constexpr int kUnroll = 1;
  using Base::Base;

  __device__ void take() {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      upper_[piece] = this->factors(piece, upper_part);
      rest_[piece] = this->factors(piece, rest);
    }
  }

  template <class AfterRow>
  __device__ void multiply(AfterRow after_row) {
#pragma unroll
    for (int i = 0; i < Base::kRows; ++i) {
      float step_sum[Base::kGroupN][4] = {};
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        multiply_row(step_sum, rest_[piece].a[i], upper_[piece].b);
        multiply_row(step_sum, upper_[piece].a[i], rest_[piece].b);
      }
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        multiply_row(step_sum, upper_[piece].a[i], upper_[piece].b);
      }
#pragma unroll
      for (int j = 0; j < Base::kGroupN; ++j) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          this->sum[i][j][r] += step_sum[j][r];
        }
      }
      after_row(i);
    }
  }

 private:
  typename Base::Factors upper_[kPieces];
  typename Base::Factors rest_[kPieces];
};

}  // namespace lockstep::cuda
