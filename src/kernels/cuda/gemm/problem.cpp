#include "kernels/cuda/gemm/problem.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "kernels/cuda/aligned.h"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/majors.h"

namespace lockstep {
namespace cuda {

void check_product(const Gemm<CudaDevice>& problem) {
  // A tile beyond the edge still counts.
  constexpr int64_t largest = std::numeric_limits<int>::max() / 2;
  const int64_t m = problem.m;
  const int64_t n = problem.n;
  const int64_t k = problem.k;
  LOCKSTEP_CHECK(m >= 0 && n >= 0 && k >= 0 && m <= largest && n <= largest && k <= largest,
                 "a product of m={}, n={}, k={}", m, n, k);
  LOCKSTEP_CHECK(
      problem.a.size() >= m * k && problem.b.size() >= k * n && problem.c.size() >= m * n,
      "a has {}, b {} and c {} elements; m={}, n={}, k={}", problem.a.size(), problem.b.size(),
      problem.c.size(), m, n, k);
  LOCKSTEP_CHECK(problem.bias.empty() || problem.bias.size() >= n, "bias has {} elements; n={}",
                 problem.bias.size(), n);
  for (const CudaView<const float> matrix :
       {problem.residual, CudaView<const float>(problem.gelu_derivative), problem.factor}) {
    LOCKSTEP_CHECK(matrix.empty() || matrix.size() >= m * n,
                   "a matrix of the epilogue has {} elements; m={}, n={}", matrix.size(), m, n);
  }
  LOCKSTEP_CHECK(problem.gelu_derivative.empty() || problem.gelu.has_value(),
                 "gelu_derivative without gelu");
}

unsigned features_of(const Gemm<CudaDevice>& problem) {
  unsigned features = kPlain;
  features |= problem.bias.empty() ? kPlain : kBias;
  features |= problem.residual.empty() ? kPlain : kResidual;
  features |= problem.factor.empty() ? kPlain : kFactor;
  features |= problem.accumulate ? kAccumulate : kPlain;
  if (problem.gelu) {
    features |= *problem.gelu == Gelu::kTanh ? kGeluTanh : kGeluErf;
  }
  return features;
}

bool is_fused(const Gemm<CudaDevice>& problem, unsigned features) {
  if (features == kPlain) {
    return true;
  }
  return dispatch_majors(problem.trans_a, problem.trans_b, [features](auto a, auto b) {
    return FusedFeatures<a(), b()>::Sets::contains(features);
  });
}

Gemm<CudaDevice> without_features(Gemm<CudaDevice> problem) {
  problem.accumulate = false;
  problem.bias = {};
  problem.residual = {};
  problem.gelu = {};
  problem.gelu_derivative = {};
  problem.factor = {};
  return problem;
}

Gemm<CudaDevice> swapped(const Gemm<CudaDevice>& problem) {
  Gemm<CudaDevice> result = problem;
  std::swap(result.m, result.n);
  std::swap(result.a, result.b);
  return result;
}

bool aligned(CudaView<const float> view) {
  return view.empty() || aligned16(view.data());
}

bool aligned_rows(const Gemm<CudaDevice>& problem) {
  const int64_t a_row = problem.trans_a == Transpose::kNo ? problem.k : problem.m;
  const int64_t b_row = problem.trans_b == Transpose::kNo ? problem.n : problem.k;
  return a_row % 4 == 0 && b_row % 4 == 0 && problem.n % 4 == 0 && aligned(problem.a) &&
         aligned(problem.b) && aligned(problem.c) && aligned(problem.bias) &&
         aligned(problem.residual) && aligned(problem.factor) && aligned(problem.gelu_derivative);
}

}  // namespace cuda

GemmQuery query_of(const Gemm<CudaDevice>& problem) {
  return {.m = problem.m,
          .n = problem.n,
          .k = problem.k,
          .trans_a = problem.trans_a,
          .trans_b = problem.trans_b,
          .aligned = cuda::aligned_rows(problem),
          .plain = (cuda::features_of(problem) & ~cuda::kAccumulate) == 0};
}

}  // namespace lockstep
