// The model's matrix product on the GPU against double precision: every plan, every feature.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda_device.h"
#include "gpu/every_plan.h"
#include "gpu/gemm_cases.h"
#include "gpu/guarded.h"
#include "kernels/cuda/gemm/plan.h"
#include "kernels/cuda/gemm/planned_gemm.h"
#include "kernels/cuda/gemm/problem.h"
#include "kernels/cuda/ops.h"

namespace lockstep {
namespace {

using naive::GemmOperands;

constexpr Transpose kBoth[] = {Transpose::kNo, Transpose::kYes};

// Below, at and beyond the edges of every tile; one that is all whole tiles, and several of them.
constexpr Size kSizes[] = {{1, 1, 1},       {3, 65, 127},   {127, 3, 1000}, {129, 1000, 65},
                           {64, 64, 32},    {128, 80, 384}, {256, 384, 96}, {132, 68, 4096},
                           {384, 132, 100}, {260, 132, 64}, {5, 8, 0}};

struct Outcome {
  std::vector<float> c;
  std::vector<float> gelu_derivative;
};

// A problem's memory on the GPU, poisoned where the product is to be written.
class OnGpu {
 public:
  OnGpu(CudaStream& stream, const GemmOperands& in, int64_t shift)
      : stream_(stream),
        in_(in),
        a_(stream, in.a, shift),
        b_(stream, in.b, shift),
        bias_(stream, in.bias, shift),
        residual_(stream, in.residual, shift),
        factor_(stream, in.factor, shift),
        shift_(shift) {
    reset();
  }

  Gemm<CudaDevice> problem() {
    return {.m = in_.m,
            .n = in_.n,
            .k = in_.k,
            .trans_a = in_.trans_a,
            .trans_b = in_.trans_b,
            .a = a_.view(),
            .b = b_.view(),
            .c = c_->view(),
            .accumulate = !in_.accumulated.empty(),
            .bias = bias_.view(),
            .residual = residual_.view(),
            .gelu = in_.gelu,
            .gelu_derivative = derivative_->view(),
            .factor = factor_.view()};
  }

  Outcome run(const GemmPlan& plan) {
    reset();
    gemm_by_plan(stream_, problem(), plan);
    stream_.synchronize();
    return {c_->values(), derivative_->values()};
  }

 private:
  void reset() {
    const std::vector<float> poison(static_cast<size_t>(in_.m * in_.n), std::nanf(""));
    c_.emplace(stream_, in_.accumulated.empty() ? poison : in_.accumulated, shift_);
    derivative_.emplace(stream_, in_.gelu_derivative ? poison : std::vector<float>(), shift_);
  }

  CudaStream& stream_;
  const GemmOperands& in_;
  Guarded<float> a_;
  Guarded<float> b_;
  Guarded<float> bias_;
  Guarded<float> residual_;
  Guarded<float> factor_;
  std::optional<Guarded<float>> c_;
  std::optional<Guarded<float>> derivative_;
  int64_t shift_;
};

std::string case_name(const GemmOperands& in, const GemmPlan& plan, Precision precision) {
  return std::to_string(in.m) + " x " + std::to_string(in.n) + " x " + std::to_string(in.k) +
         (in.trans_a == Transpose::kYes ? " T" : " N") +
         (in.trans_b == Transpose::kYes ? "T" : "N") +
         (precision == Precision::kTf32 ? " tf32" : " fp32") + ", " +
         std::string(kernel_facts(plan.kernel).name) + ", slices " + std::to_string(plan.slices) +
         ", parts " + std::to_string(plan.part_k) + (plan.swapped ? ", swapped" : "");
}

GemmOperands without_features(const GemmOperands& in) {
  GemmOperands plain;
  plain.m = in.m;
  plain.n = in.n;
  plain.k = in.k;
  plain.trans_a = in.trans_a;
  plain.trans_b = in.trans_b;
  plain.a = in.a;
  plain.b = in.b;
  return plain;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) {
    most = std::max(most, std::abs(value));
  }
  return most;
}

// What a product should give, and how far off it may be.
class Expected {
 public:
  explicit Expected(const GemmOperands& in)
      : in_(in),
        product_(naive::gemm_product<double>(in)),
        reference_(naive::gemm_epilogue<double>(in, product_)),
        bounds_(error_bounds(in, reference_.c)),
        of_product_(error_bounds(without_features(in), product_)) {}

  // Twice.
  void check(OnGpu& gpu, const GemmPlan& plan, Precision precision) const {
    SCOPED_TRACE(case_name(in_, plan, precision));
    const bool tf32 = precision == Precision::kTf32;
    const Outcome once = gpu.run(plan);
    EXPECT_LE(error(once.c, reference_.c), tf32 ? bounds_.tf32 : bounds_.fp32);
    if (in_.gelu_derivative) {
      // The derivative's slope is below 1 and its maximum above 1: it errs less than its argument.
      const double bound = (tf32 ? of_product_.tf32 : of_product_.fp32) * largest(product_) + 1e-6;
      EXPECT_LE(error(once.gelu_derivative, reference_.gelu_derivative), bound);
    }
    const Outcome again = gpu.run(plan);
    EXPECT_EQ(std::memcmp(once.c.data(), again.c.data(), once.c.size() * sizeof(float)), 0)
        << "two runs differ";
  }

 private:
  const GemmOperands& in_;
  std::vector<double> product_;
  naive::GemmResult<double> reference_;
  ErrorBounds bounds_;
  ErrorBounds of_product_;
};

// In both precisions, by every plan.
void check(const GemmOperands& in, int64_t shift = 0) {
  const Expected expected(in);
  for (const Precision precision : kPrecisions) {
    CudaStream stream(precision);
    OnGpu gpu(stream, in, shift);
    for (const GemmPlan& plan : every_plan(gpu.problem(), stream)) {
      expected.check(gpu, plan, precision);
    }
  }
}

class GpuGemm : public ::testing::Test {
 protected:
  void SetUp() override { require_cuda_device(); }
};

class GpuGemmSizes : public GpuGemm, public ::testing::WithParamInterface<Size> {};

TEST_P(GpuGemmSizes, MatchesDoublePrecisionByEveryPlan) {
  for (const Transpose trans_a : kBoth) {
    for (const Transpose trans_b : kBoth) {
      check(operands(GetParam(), trans_a, trans_b));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GpuGemm, GpuGemmSizes, ::testing::ValuesIn(kSizes), [](const auto& test) {
  return std::to_string(test.param.m) + "x" + std::to_string(test.param.n) + "x" +
         std::to_string(test.param.k);
});

// One bit of `features` for each part of the epilogue.
GemmOperands with_features(GemmOperands in, unsigned features) {
  const int64_t size = in.m * in.n;
  in.bias = (features & 1U) != 0 ? normal(in.n, 2) : in.bias;
  in.residual = (features & 2U) != 0 ? normal(size, 3) : in.residual;
  if ((features & 4U) != 0) {
    in.gelu = (features & 8U) != 0 ? Gelu::kErf : Gelu::kTanh;
    in.gelu_derivative = (features & 16U) != 0;
  }
  in.factor = (features & 32U) != 0 ? normal(size, 4) : in.factor;
  in.accumulated = (features & 64U) != 0 ? normal(size, 5) : in.accumulated;
  return in;
}

TEST_F(GpuGemm, EveryFeatureFusedOrNot) {
  for (const Size& size : {Size{132, 72, 96}, Size{33, 35, 37}}) {
    for (const Transpose trans_a : kBoth) {
      for (const Transpose trans_b : kBoth) {
        for (unsigned features = 1; features < 128; ++features) {
          check(with_features(operands(size, trans_a, trans_b), features));
        }
      }
    }
  }
}

// So many tiles that a block which stays computes several of them, and each of its warpgroups two,
// and so deep that a tile takes more than a round of the ring; the last row and the last column of
// tiles are not whole.
TEST_F(GpuGemm, BlocksThatStayComputeEveryTile) {
  constexpr unsigned kBiasAndResidual = 3;
  const GemmOperands in =
      with_features(operands({2200, 1800, 180}, Transpose::kNo, Transpose::kYes), kBiasAndResidual);
  const Expected expected(in);
  CudaStream stream(Precision::kTf32);
  OnGpu gpu(stream, in, 0);
  for (const GemmKernel kernel :
       kernels_for(query_of(gpu.problem()), Precision::kTf32, stream.facts())) {
    for (const int64_t slices : {1, 3}) {
      expected.check(gpu, sliced_plan(kernel, in.k, slices), Precision::kTf32);
    }
  }
}

TEST_F(GpuGemm, NeedsNoAlignment) {
  for (const Transpose trans_a : kBoth) {
    for (const Transpose trans_b : kBoth) {
      check(with_features(operands({128, 128, 64}, trans_a, trans_b), 125), 1);
    }
  }
}

// Sums of positive products, which everything that is cut off makes smaller: what is left of the
// error when it does not average out.
TEST_F(GpuGemm, SinglePrecisionHasNoBias) {
  GemmOperands in = operands({128, 128, 4096}, Transpose::kNo, Transpose::kYes);
  for (std::vector<float>* const factor : {&in.a, &in.b}) {
    for (float& value : *factor) {
      value = std::abs(value);
    }
  }
  const std::vector<double> reference = naive::gemm_product<double>(in);
  CudaStream stream;
  OnGpu gpu(stream, in, 0);
  for (const GemmPlan& plan : every_plan(gpu.problem(), stream)) {
    SCOPED_TRACE(case_name(in, plan, Precision::kFp32));
    const Outcome outcome = gpu.run(plan);
    double off = 0;
    double sum = 0;
    for (size_t i = 0; i < reference.size(); ++i) {
      off += outcome.c[i] - reference[i];
      sum += reference[i];
    }
    EXPECT_LE(std::abs(off / sum), 0x1p-22);
  }
}

// Where `special` is a factor, the row or the column is not finite; everything else is as ever.
void check_not_finite(float special, Precision precision) {
  for (const bool in_a : {true, false}) {
    GemmOperands in = operands({132, 72, 96}, Transpose::kNo, Transpose::kYes);
    const std::vector<double> reference = naive::gemm_product<double>(in);
    const ErrorBounds bounds = error_bounds(in, reference);
    (in_a ? in.a : in.b)[static_cast<size_t>(5 * in.k + 7)] = special;
    CudaStream stream(precision);
    OnGpu gpu(stream, in, 0);
    for (const GemmPlan& plan : every_plan(gpu.problem(), stream)) {
      SCOPED_TRACE(case_name(in, plan, precision) + (in_a ? ", in a " : ", in b ") +
                   std::to_string(special));
      Outcome outcome = gpu.run(plan);
      int64_t finite = 0;
      for (int64_t other = 0; other < (in_a ? in.n : in.m); ++other) {
        const auto at = static_cast<size_t>(in_a ? 5 * in.n + other : other * in.n + 5);
        finite += std::isfinite(outcome.c[at]) ? 1 : 0;
        outcome.c[at] = static_cast<float>(reference[at]);
      }
      EXPECT_EQ(finite, 0);
      EXPECT_LE(error(outcome.c, reference),
                precision == Precision::kTf32 ? bounds.tf32 : bounds.fp32);
    }
  }
}

// The last is what a GPU's arithmetic makes of an invalid operation.
TEST_F(GpuGemm, WhatIsNotFiniteShows) {
  for (const Precision precision : kPrecisions) {
    for (const float special : {HUGE_VALF, -HUGE_VALF, std::nanf(""), -std::nanf(""),
                                std::bit_cast<float>(0x7FFFFFFFU)}) {
      check_not_finite(special, precision);
    }
  }
}

// Factors and products far from one, and factors whose lower part cannot be held in full: 2^-136 is
// the least that a TF32 value resolves.
TEST_F(GpuGemm, SinglePrecisionOfSmallAndLargeFactors) {
  for (const auto& [scale_a, scale_b, more] :
       {std::tuple{0x1p-100F, 0x1p90F, 0.0}, std::tuple{0x1p100F, 0x1p-110F, 0.0},
        std::tuple{0x1p-60F, 0x1p-60F, 0.0}, std::tuple{0x1p-124F, 0x1p10F, 0x1p-12}}) {
    GemmOperands in = operands({132, 72, 96}, Transpose::kNo, Transpose::kYes);
    for (float& value : in.a) {
      value *= scale_a;
    }
    for (float& value : in.b) {
      value *= scale_b;
    }
    const std::vector<double> reference = naive::gemm_product<double>(in);
    const double bound = error_bounds(in, reference).fp32 + more;
    CudaStream stream;
    OnGpu gpu(stream, in, 0);
    for (const GemmPlan& plan : every_plan(gpu.problem(), stream)) {
      SCOPED_TRACE(case_name(in, plan, Precision::kFp32) + ", scales " + std::to_string(scale_a) +
                   " and " + std::to_string(scale_b));
      EXPECT_LE(error(gpu.run(plan).c, reference), bound);
    }
  }
}

TEST_F(GpuGemm, ChoosesAPlanOfItsOwn) {
  const GemmOperands in = operands({384, 384, 1024}, Transpose::kYes, Transpose::kNo);
  CudaStream stream;
  Guarded a(stream, in.a, 0);
  Guarded b(stream, in.b, 0);
  Guarded c(stream, std::vector<float>(static_cast<size_t>(in.m * in.n), std::nanf("")), 0);
  gemm(stream, {.m = in.m,
                .n = in.n,
                .k = in.k,
                .trans_a = in.trans_a,
                .a = a.view(),
                .b = b.view(),
                .c = c.view()});
  const std::vector<double> reference = naive::gemm_product<double>(in);
  EXPECT_LE(error(c.values(), reference), error_bounds(in, reference).fp32);
}

TEST_F(GpuGemm, RefusesKernelsThatCannotReadA) {
  CudaStream stream(Precision::kTf32);
  CudaBuffer<float> memory(64 * 64);
  for (const auto& [kernel, trans_a] : {std::pair{GemmKernel::kWgmma128x64, Transpose::kYes},
                                        std::pair{GemmKernel::kPingPong64x192, Transpose::kYes},
                                        std::pair{GemmKernel::kWgmmaMn128x128, Transpose::kNo}}) {
    const Gemm<CudaDevice> problem = {.m = 64,
                                      .n = 64,
                                      .k = 64,
                                      .trans_a = trans_a,
                                      .a = std::as_const(memory).view(),
                                      .b = std::as_const(memory).view(),
                                      .c = memory.view()};
    EXPECT_THROW(gemm_by_plan(stream, problem, sliced_plan(kernel, 64, 1)), InternalError)
        << kernel_facts(kernel).name;
  }
}

TEST_F(GpuGemm, RefusesKernelsThatCannotReadUnalignedRows) {
  CudaStream stream(Precision::kTf32);
  CudaBuffer<float> memory(64 * 64 + 1);
  const Gemm<CudaDevice> problem = {.m = 64,
                                    .n = 64,
                                    .k = 64,
                                    .trans_b = Transpose::kYes,
                                    .a = std::as_const(memory).view().subview({1, 64 * 64 + 1}),
                                    .b = std::as_const(memory).view(),
                                    .c = memory.view()};
  for (const GemmKernel kernel : {GemmKernel::kMma128x64, GemmKernel::kWgmma128x64}) {
    EXPECT_THROW(gemm_by_plan(stream, problem, sliced_plan(kernel, 64, 1)), InternalError)
        << kernel_facts(kernel).name;
  }
}

TEST_F(GpuGemm, RefusesViewsThatAreTooSmall) {
  CudaStream stream;
  CudaBuffer<float> memory(16);
  Gemm<CudaDevice> problem = {.m = 4,
                              .n = 4,
                              .k = 4,
                              .a = std::as_const(memory).view(),
                              .b = std::as_const(memory).view(),
                              .c = memory.view()};
  problem.k = 5;
  EXPECT_THROW(gemm(stream, problem), InternalError);
  problem.k = 4;
  problem.bias = std::as_const(memory).view().subview({0, 3});
  EXPECT_THROW(gemm(stream, problem), InternalError);
}

}  // namespace
}  // namespace lockstep
