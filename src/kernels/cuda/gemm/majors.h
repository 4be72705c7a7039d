#pragma once

// From a problem's run-time transposes to compile-time majors.

#include <type_traits>

#include "kernels/gemm.h"
#include "kernels/layout/swizzle.h"

namespace lockstep::cuda {

using layout::Major;

/// body(A, B) with the majors of the operands as types: m x k of A is K-major when it is stored as
/// it stands, k x n of B is MN-major when it is.
template <class Body>
auto dispatch_majors(Transpose trans_a, Transpose trans_b, Body body) {
  using K = std::integral_constant<Major, Major::kK>;
  using MN = std::integral_constant<Major, Major::kMN>;
  const bool a_k = trans_a == Transpose::kNo;
  const bool b_k = trans_b == Transpose::kYes;
  if (a_k) {
    return b_k ? body(K{}, K{}) : body(K{}, MN{});
  }
  return b_k ? body(MN{}, K{}) : body(MN{}, MN{});
}

}  // namespace lockstep::cuda
