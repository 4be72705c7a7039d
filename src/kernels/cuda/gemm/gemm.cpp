// gemm on the GPU: checks, the plan, and the kernels it names.

#include <cstdint>
#include <limits>

#include "core/base/error.h"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/launch.h"
#include "kernels/cuda/gemm/majors.h"
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
  return dispatch_majors(problem.trans_a, problem.trans_b, [features](auto a, auto b) {
    return FusedFeatures<a(), b()>::Sets::contains(features);
  });
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

GemmLauncher launcher_of(GemmKernel kernel, bool aligned) {
  switch (kernel) {
    case GemmKernel::kSimt128x128:
      return &launch_simt_128x128;
    case GemmKernel::kSimt128x64:
      return &launch_simt_128x64;
    case GemmKernel::kSimt64x64:
      return aligned ? &launch_simt_64x64 : &launch_simt_unaligned;
    case GemmKernel::kMma128x128:
      return &launch_mma_128x128;
    case GemmKernel::kMma128x64:
      return &launch_mma_128x64;
    case GemmKernel::kMma64x64:
      return aligned ? &launch_mma_64x64 : &launch_mma_unaligned;
    case GemmKernel::kWgmma128x256:
      return &launch_wgmma_128x256;
    case GemmKernel::kWgmma128x192:
      return &launch_wgmma_128x192;
    case GemmKernel::kWgmma128x128:
      return &launch_wgmma_128x128;
    case GemmKernel::kWgmma128x96:
      return &launch_wgmma_128x96;
    case GemmKernel::kWgmma128x64:
      return &launch_wgmma_128x64;
  }
  throw InternalError("a kernel of {}", static_cast<int>(kernel));
}

// The scratch memory of one product, by parts.
struct Scratch {
  CudaView<float> partials;
  CudaView<float> a;  // transposed
  CudaView<float> b;
};

Scratch scratch_for(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan,
                    bool finished) {
  const bool k_major_only = kernel_facts(plan.kernel).k_major_only;
  const bool transpose_a = k_major_only && problem.trans_a == Transpose::kYes;
  const bool transpose_b = k_major_only && problem.trans_b == Transpose::kNo;
  // Each part starts at a multiple of 16 bytes: with aligned rows its size is a multiple of four.
  const int64_t partials = finished ? 0 : (plan.slices * problem.m * problem.n + 3) / 4 * 4;
  const int64_t a = transpose_a ? problem.m * problem.k : 0;
  const int64_t b = transpose_b ? problem.k * problem.n : 0;
  const CudaView<float> all = stream.scratch<float>(partials + a + b);
  return {all.subview({0, partials}), all.subview({partials, partials + a}),
          all.subview({partials + a, partials + a + b})};
}

}  // namespace

GemmQuery query_of(const Gemm<CudaDevice>& problem) {
  return {problem.m, problem.n, problem.k, problem.trans_a, problem.trans_b, aligned_rows(problem)};
}

void gemm_by_plan(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan) {
  check(problem);
  if (problem.m == 0 || problem.n == 0) {
    return;
  }
  const unsigned features = features_of(problem);
  const bool aligned = aligned_rows(problem);
  const bool finished =
      plan.slices == 1 && (features == kPlain || (aligned && is_fused(problem, features)));
  const Scratch scratch = scratch_for(stream, problem, plan, finished);
  Gemm<CudaDevice> readable = problem;
  if (!scratch.a.empty()) {
    transpose_matrix(stream, scratch.a.data(), problem.a.data(), problem.k, problem.m);
    readable.a = scratch.a;
  }
  if (!scratch.b.empty()) {
    transpose_matrix(stream, scratch.b.data(), problem.b.data(), problem.k, problem.n);
    readable.b = scratch.b;
  }
  const GemmLauncher launch = launcher_of(plan.kernel, aligned);
  if (finished) {
    launch(stream, {.problem = readable, .plan = plan, .features = features});
    return;
  }
  launch(stream, {.problem = readable, .plan = plan, .partials = scratch.partials.data()});
  finish_product(stream, problem, scratch.partials.data(), plan.slices, features);
}

void gemm(CudaStream& stream, const Gemm<CudaDevice>& problem) {
  gemm_by_plan(stream, problem, plan_gemm(query_of(problem), stream.precision(), stream.facts()));
}

}  // namespace lockstep
