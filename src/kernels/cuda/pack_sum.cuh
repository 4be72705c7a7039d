#pragma once

// A thread's share of a sum over many floats, in double.

#include "kernels/cuda/pack.cuh"

namespace lockstep::cuda {

/// The sum of term(x[i]) over the packs at `first`, `first + stride` and so on in front of `end`,
/// several of them loaded at a time. The order is that of the positions.
template <int kWidth, class Term>
__device__ double sum_packs(const float* x, int64_t first, int64_t end, int64_t stride, Term term) {
  constexpr int kPacks = 4;
  double sums[kPacks] = {};
  for (int64_t at = first; at < end; at += kPacks * stride) {
    Pack<kWidth> packs[kPacks];
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      packs[i] = at + i * stride < end ? load_pack<kWidth>(x + at + i * stride) : Pack<kWidth>{};
    }
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      for_each_lane<kWidth>([&](int j) { sums[i] += term(static_cast<double>(packs[i][j])); });
    }
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace lockstep::cuda
