#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "support/naive_gemm.h"

namespace lockstep {

/// m, n and k of a product.
struct Size {
  int64_t m;
  int64_t n;
  int64_t k;
};

/// N(0, 1).
inline std::vector<float> normal(int64_t size, uint64_t stream) {
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>(random_normal(5, stream, static_cast<uint64_t>(i))));
  }
  return values;
}

inline naive::GemmOperands operands(const Size& size, Transpose trans_a, Transpose trans_b) {
  naive::GemmOperands in;
  in.m = size.m;
  in.n = size.n;
  in.k = size.k;
  in.trans_a = trans_a;
  in.trans_b = trans_b;
  in.a = normal(size.m * size.k, 0);
  in.b = normal(size.k * size.n, 1);
  return in;
}

/// To the nearest value with ten bits of mantissa.
inline std::vector<float> in_tf32(std::vector<float> values) {
  for (float& value : values) {
    value = std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000U) & ~0x1FFFU);
  }
  return values;
}

/// max |value - reference| / max |reference|; NaN when any value is.
template <class Real>
double error(const std::vector<Real>& values, const std::vector<double>& reference) {
  double worst = 0;
  double largest = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double off = std::abs(static_cast<double>(values[i]) - reference[i]);
    if (std::isnan(off)) {
      return off;
    }
    worst = std::max(worst, off);
    largest = std::max(largest, std::abs(reference[i]));
  }
  return largest == 0 ? worst : worst / largest;
}

/// What a product may err in each precision: twice what the plain loop does, and the rounding of
/// one result.
struct ErrorBounds {
  double fp32;
  double tf32;
};
inline ErrorBounds error_bounds(const naive::GemmOperands& in,
                                const std::vector<double>& reference) {
  naive::GemmOperands rounded = in;
  rounded.a = in_tf32(in.a);
  rounded.b = in_tf32(in.b);
  const auto bound = [&reference](const naive::GemmOperands& operands) {
    const std::vector<float> product = naive::gemm_product<float>(operands);
    return 2 * error(naive::gemm_epilogue<float>(operands, product).c, reference) + 0x1p-23;
  };
  return {bound(in), bound(rounded)};
}

}  // namespace lockstep
