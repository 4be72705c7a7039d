#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/gemm.h"
#include "support/gelu_reference.h"

namespace lockstep::naive {

/// The operands of one product and of its epilogue, dense and row-major; an empty vector is a step
/// left out.
struct GemmOperands {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Transpose trans_a = Transpose::kNo;
  Transpose trans_b = Transpose::kNo;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> bias;
  std::vector<float> residual;
  std::vector<float> factor;
  std::vector<float> accumulated;  ///< what c holds before, when it is added to
  std::optional<Gelu> gelu;
  bool gelu_derivative = false;
};

template <class Real>
struct GemmResult {
  std::vector<Real> c;
  std::vector<Real> gelu_derivative;
};

/// The contract of kernels/gemm.h in loops, in two halves: in double they are the reference, in
/// float the plain implementation whose error sets the tolerance.
template <class Real>
std::vector<Real> gemm_product(const GemmOperands& in) {
  std::vector<Real> product;
  for (int64_t i = 0; i < in.m; ++i) {
    for (int64_t j = 0; j < in.n; ++j) {
      Real sum = 0;
      for (int64_t p = 0; p < in.k; ++p) {
        const int64_t at_a = in.trans_a == Transpose::kYes ? p * in.m + i : i * in.k + p;
        const int64_t at_b = in.trans_b == Transpose::kYes ? j * in.k + p : p * in.n + j;
        sum += static_cast<Real>(in.a[static_cast<size_t>(at_a)]) *
               static_cast<Real>(in.b[static_cast<size_t>(at_b)]);
      }
      product.push_back(sum);
    }
  }
  return product;
}

template <class Real>
GemmResult<Real> gemm_epilogue(const GemmOperands& in, const std::vector<Real>& product) {
  GemmResult<Real> out;
  for (size_t at = 0; at < product.size(); ++at) {
    Real value = product[at];
    if (!in.bias.empty()) {
      value += static_cast<Real>(in.bias[at % static_cast<size_t>(in.n)]);
    }
    if (!in.residual.empty()) {
      value += static_cast<Real>(in.residual[at]);
    }
    if (in.gelu_derivative) {
      out.gelu_derivative.push_back(
          static_cast<Real>(naive::gelu_derivative(in.gelu.value(), static_cast<double>(value))));
    }
    if (in.gelu) {
      value = static_cast<Real>(naive::gelu(*in.gelu, static_cast<double>(value)));
    }
    if (!in.factor.empty()) {
      value *= static_cast<Real>(in.factor[at]);
    }
    if (!in.accumulated.empty()) {
      value = static_cast<Real>(in.accumulated[at]) + value;
    }
    out.c.push_back(value);
  }
  return out;
}

}  // namespace lockstep::naive
