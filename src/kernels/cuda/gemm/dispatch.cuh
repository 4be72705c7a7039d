#pragma once

// From a problem's run-time transposes to kernels' compile-time majors.

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/gemm.h"

namespace lockstep::cuda {

/// Calls body(A, B) with the majors of the operands as types: m x k of A is K-major when it is
/// stored as it stands, k x n of B is MN-major when it is.
template <class Body>
void dispatch_majors(Transpose trans_a, Transpose trans_b, Body body) {
  using K = std::integral_constant<Major, Major::kK>;
  using MN = std::integral_constant<Major, Major::kMN>;
  const bool a_k = trans_a == Transpose::kNo;
  const bool b_k = trans_b == Transpose::kYes;
  if (a_k) {
    b_k ? body(K{}, K{}) : body(K{}, MN{});
  } else {
    b_k ? body(MN{}, K{}) : body(MN{}, MN{});
  }
}

template <Major kMajor>
Operand<kMajor> make_operand(const float* data, int64_t extent, int64_t depth) {
  const int64_t row = kMajor == Major::kK ? depth : extent;
  return {data, static_cast<int>(extent), static_cast<int>(depth), row % 4 == 0 && aligned16(data)};
}

}  // namespace lockstep::cuda
