#pragma once

// What can follow a product before it is stored: sets of features, one bit each, known at compile
// time where they are fused. kernels/gemm.h has the order in which they apply.

#include "kernels/layout/swizzle.h"

namespace lockstep::cuda {

using layout::Major;

enum Feature : unsigned {
  kPlain = 0,
  kBias = 1,
  kResidual = 2,
  kGeluTanh = 4,
  kGeluErf = 8,
  kFactor = 16,
  kAccumulate = 32,
};

template <unsigned... kSets>
struct FeatureSets {
  static constexpr bool contains(unsigned features) { return ((features == kSets) || ...); }
};

/// What the kernels for aligned rows have fused behind a product of these majors, besides nothing:
/// what the model needs.
template <Major kA, Major kB>
struct FusedFeatures {
  using Sets = FeatureSets<>;
};
template <>
struct FusedFeatures<Major::kK, Major::kK> {  // forward: x · Wᵀ
  using Sets = FeatureSets<kBias, kBias | kResidual, kBias | kGeluTanh, kBias | kGeluErf>;
};
template <>
struct FusedFeatures<Major::kK, Major::kMN> {  // the gradient of the input: dy · W
  using Sets = FeatureSets<kFactor>;
};
template <>
struct FusedFeatures<Major::kMN, Major::kMN> {  // the gradient of the weight: dyᵀ · x
  using Sets = FeatureSets<kAccumulate>;
};

}  // namespace lockstep::cuda
