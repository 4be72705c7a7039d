// gemm on the GPU: checks, the plan, and the kernels it names.

#include <cstdint>
#include <limits>

#include "core/base/error.h"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/launch.h"
#include "kernels/cuda/ops.h"

namespace lockstep {
namespace {

using namespace cuda;

void check(const Gemm<CudaDevice>& problem) {
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
  using K = std::integral_constant<Major, Major::kK>;
  using MN = std::integral_constant<Major, Major::kMN>;
  const auto fused = [features](auto a, auto b) {
    return FusedFeatures<a(), b()>::Sets::contains(features);
  };
  const bool a_k = problem.trans_a == Transpose::kNo;
  const bool b_k = problem.trans_b == Transpose::kYes;
  return a_k ? (b_k ? fused(K{}, K{}) : fused(K{}, MN{}))
             : (b_k ? fused(MN{}, K{}) : fused(MN{}, MN{}));
}

bool aligned_rows(const Gemm<CudaDevice>& problem) {
  const auto aligned = [](CudaView<const float> view) {
    return view.empty() || reinterpret_cast<uintptr_t>(view.data()) % 16 == 0;
  };
  const int64_t a_row = problem.trans_a == Transpose::kNo ? problem.k : problem.m;
  const int64_t b_row = problem.trans_b == Transpose::kNo ? problem.n : problem.k;
  return a_row % 4 == 0 && b_row % 4 == 0 && problem.n % 4 == 0 && aligned(problem.a) &&
         aligned(problem.b) && aligned(problem.c) && aligned(problem.bias) &&
         aligned(problem.residual) && aligned(problem.factor) && aligned(problem.gelu_derivative);
}

GemmLauncher launcher_for(GemmTile tile, Precision precision, bool aligned) {
  const bool mma = precision == Precision::kTf32;
  if (!aligned) {
    return mma ? &launch_mma_unaligned : &launch_simt_unaligned;
  }
  switch (tile) {
    case GemmTile::kLarge:
      return mma ? &launch_mma_large : &launch_simt_large;
    case GemmTile::kMedium:
      return mma ? &launch_mma_medium : &launch_simt_medium;
    case GemmTile::kSmall:
      return mma ? &launch_mma_small : &launch_simt_small;
  }
  throw InternalError("a tile of {}", static_cast<int>(tile));
}

}  // namespace

void gemm_by_plan(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan) {
  check(problem);
  if (problem.m == 0 || problem.n == 0) {
    return;
  }
  const unsigned features = features_of(problem);
  const bool aligned = aligned_rows(problem);
  const GemmLauncher launch = launcher_for(plan.tile, stream.precision(), aligned);
  const bool finished =
      plan.slices == 1 && (features == kPlain || (aligned && is_fused(problem, features)));
  if (finished) {
    launch(stream, {.problem = problem, .plan = plan, .features = features});
    return;
  }
  const CudaView<float> partials = stream.scratch<float>(plan.slices * problem.m * problem.n);
  launch(stream, {.problem = problem, .plan = plan, .partials = partials.data()});
  finish_product(stream, problem, partials.data(), plan.slices, features);
}

void gemm(CudaStream& stream, const Gemm<CudaDevice>& problem) {
  gemm_by_plan(stream, problem,
               plan_gemm(problem.m, problem.n, problem.k, stream.precision(), stream.facts()));
}

}  // namespace lockstep
