#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "support/gelu_reference.h"
#include "unit/kernels/simd_probe_isa.h"

namespace lockstep {
namespace {

using VectorFunction = void (*)(float*, const float*, int64_t);

// -12 … 12 in steps that are no round numbers; not a whole number of vectors.
std::vector<float> arguments() {
  std::vector<float> x;
  for (int i = 0; i <= 48003; ++i) {
    x.push_back(static_cast<float>(-12.0 + i * 0.0005));
  }
  return x;
}

void expect_near_reference(VectorFunction function, const std::function<double(double)>& reference,
                           double tolerance) {
  const std::vector<float> x = arguments();
  std::vector<float> y(x.size());
  function(y.data(), x.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  float where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = reference(static_cast<double>(x[i]));
    const double error =
        std::abs(static_cast<double>(y[i]) - expected) / std::max(1.0, std::abs(expected));
    if (!(error <= worst)) {
      worst = error;
      where = x[i];
    }
  }
  EXPECT_LE(worst, tolerance) << "at " << where;
}

TEST(SimdMath, ExponentialMatchesDouble) {
  expect_near_reference(
      LOCKSTEP_SELECT_ISA(probe_exponential), [](double x) { return std::exp(x); }, 2e-7);
}

TEST(SimdMath, ExponentialEndsInZeroAndInfinity) {
  const std::vector<float> x = {
      -std::numeric_limits<float>::infinity(), -1000.0F, -87.0F, 0.0F, 88.7F, 1000.0F,
      std::numeric_limits<float>::infinity()};
  std::vector<float> y(x.size());
  LOCKSTEP_SELECT_ISA(probe_exponential)(y.data(), x.data(), static_cast<int64_t>(x.size()));
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_NEAR(static_cast<double>(y[2]) / std::exp(-87.0), 1.0, 1e-6);
  EXPECT_EQ(y[3], 1.0F);
  EXPECT_NEAR(static_cast<double>(y[4]) / std::exp(static_cast<double>(88.7F)), 1.0, 1e-6);
  EXPECT_EQ(y[5], std::numeric_limits<float>::infinity());
  EXPECT_EQ(y[6], std::numeric_limits<float>::infinity());
}

TEST(SimdMath, GeluMatchesItsDefinition) {
  for (const Gelu form : {Gelu::kTanh, Gelu::kErf}) {
    SCOPED_TRACE(gelu_name(form));
    expect_near_reference(
        form == Gelu::kTanh ? LOCKSTEP_SELECT_ISA(probe_gelu_tanh)
                            : LOCKSTEP_SELECT_ISA(probe_gelu_erf),
        [form](double x) { return naive::gelu(form, x); }, 2e-7);
    expect_near_reference(
        form == Gelu::kTanh ? LOCKSTEP_SELECT_ISA(probe_gelu_tanh_derivative)
                            : LOCKSTEP_SELECT_ISA(probe_gelu_erf_derivative),
        [form](double x) { return naive::gelu_derivative(form, x); }, 3e-7);
  }
}

TEST(SimdMath, GeluOfHugeArgumentsIsTheArgumentOrZero) {
  const std::vector<float> x = {-1e30F, -200.0F, 200.0F, 1e10F};
  std::vector<float> y(x.size());
  for (const VectorFunction gelu :
       {LOCKSTEP_SELECT_ISA(probe_gelu_tanh), LOCKSTEP_SELECT_ISA(probe_gelu_erf)}) {
    gelu(y.data(), x.data(), static_cast<int64_t>(x.size()));
    EXPECT_NEAR(y[0], 0.0F, 1e-4F);
    EXPECT_NEAR(y[1], 0.0F, 1e-30F);
    EXPECT_EQ(y[2], 200.0F);
    EXPECT_EQ(y[3], 1e10F);
  }
}

TEST(SimdMath, GeluDerivativeOfHugeArgumentsIsOneOrZero) {
  const std::vector<float> x = {-1e30F, -1e10F, -100.0F, 100.0F, 1e10F, 1e30F};
  std::vector<float> slope(x.size());
  for (const VectorFunction derivative : {LOCKSTEP_SELECT_ISA(probe_gelu_tanh_derivative),
                                          LOCKSTEP_SELECT_ISA(probe_gelu_erf_derivative)}) {
    derivative(slope.data(), x.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(slope[i], x[i] > 0 ? 1.0F : 0.0F, 1e-30F) << x[i];
    }
  }
}

TEST(SimdMath, NanPassesThrough) {
  const float x = std::numeric_limits<float>::quiet_NaN();
  for (const VectorFunction function :
       {LOCKSTEP_SELECT_ISA(probe_exponential), LOCKSTEP_SELECT_ISA(probe_gelu_tanh),
        LOCKSTEP_SELECT_ISA(probe_gelu_tanh_derivative), LOCKSTEP_SELECT_ISA(probe_gelu_erf),
        LOCKSTEP_SELECT_ISA(probe_gelu_erf_derivative), LOCKSTEP_SELECT_ISA(probe_square_root)}) {
    float y = 0;
    function(&y, &x, 1);
    EXPECT_TRUE(std::isnan(y));
  }
}

TEST(Simd, SquareRootIsExactlyRounded) {
  const std::vector<float> x = {0.0F, 1.0F, 2.0F, 3.0F, 1e-30F, 1e30F, 7.5F};
  std::vector<float> y(x.size());
  LOCKSTEP_SELECT_ISA(probe_square_root)(y.data(), x.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i], std::sqrt(x[i]));
  }
}

TEST(Simd, PartialLoadsAndStoresTouchNothingElse) {
  const int lanes = LOCKSTEP_SELECT_ISA(probe_lanes)();
  for (int count = 0; count <= lanes; ++count) {
    const std::vector<float> x(static_cast<size_t>(count),
                               4.0F);  // the address check sees overruns
    std::vector<float> y(static_cast<size_t>(lanes) + 1, -1.0F);
    LOCKSTEP_SELECT_ISA(probe_square_root)(y.data(), x.data(), count);
    for (int i = 0; i <= lanes; ++i) {
      EXPECT_EQ(y[static_cast<size_t>(i)], i < count ? 2.0F : -1.0F) << count << " " << i;
    }
  }
}

TEST(Simd, FoldsAllLanes) {
  const auto lanes = static_cast<size_t>(LOCKSTEP_SELECT_ISA(probe_lanes)());
  std::vector<float> x(lanes);
  std::iota(x.begin(), x.end(), 1.0F);
  const auto n = static_cast<float>(lanes);
  EXPECT_EQ(LOCKSTEP_SELECT_ISA(probe_sum_lanes)(x.data()), n * (n + 1) / 2);
  EXPECT_EQ(LOCKSTEP_SELECT_ISA(probe_largest_lane)(x.data()), n);
}

}  // namespace
}  // namespace lockstep
