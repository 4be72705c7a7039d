#include "kernels/gelu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

std::vector<float> run_forward(CpuStream& stream, Gelu form, const std::vector<float>& x) {
  Output y(static_cast<int64_t>(x.size()));
  gelu_forward(stream, {.form = form, .y = y.view(), .x = view_of(x)});
  return y.values();
}

std::vector<float> run_backward(CpuStream& stream, Gelu form, const std::vector<float>& dy,
                                const std::vector<float>& x) {
  Output dx(static_cast<int64_t>(x.size()));
  gelu_backward(stream, {.form = form, .dx = dx.view(), .dy = view_of(dy), .x = view_of(x)});
  return dx.values();
}

class GeluTest : public testing::TestWithParam<Gelu> {};

TEST_P(GeluTest, MatchesTheReference) {
  for (const int64_t size : {1, 15, 1000, 70001}) {
    const std::vector<float> x = normal_values(size, 1, 2.0);
    const std::vector<float> dy = normal_values(size, 2);
    const auto y = at_any_thread_count(
        "gelu", [&](CpuStream& stream) { return run_forward(stream, GetParam(), x); });
    expect_close("y", y, naive::gelu(GetParam(), x), naive::gelu(GetParam(), to_double(x)));
    const auto dx = at_any_thread_count("gelu backward", [&](CpuStream& stream) {
      return run_backward(stream, GetParam(), dy, x);
    });
    expect_close("dx", dx, naive::gelu_backward(GetParam(), dy, x),
                 naive::gelu_backward(GetParam(), to_double(dy), to_double(x)));
  }
}

// A single element at a time, so that a small value counts as much as a large one.
TEST_P(GeluTest, IsAccurateOverTheWholeRange) {
  CpuStream stream;
  std::vector<float> x;
  for (float value = -30; value <= 30; value += 0.0078125F) {
    x.push_back(value);
  }
  const auto y = run_forward(stream, GetParam(), x);
  const auto slope = run_backward(stream, GetParam(), std::vector<float>(x.size(), 1.0F), x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(y[i], gelu_value(GetParam(), x[i]), 3e-7 * std::max(1.0F, std::abs(x[i]))) << x[i];
    EXPECT_NEAR(slope[i], gelu_derivative(GetParam(), x[i]), 1e-6) << x[i];
  }
}

TEST_P(GeluTest, SaturatesWithoutNan) {
  CpuStream stream;
  const std::vector<float> x = {-1e30F, -1e10F, -100, 100, 1e10F, 1e30F};
  const auto y = run_forward(stream, GetParam(), x);
  const auto slope = run_backward(stream, GetParam(), std::vector<float>(x.size(), 1.0F), x);
  for (size_t i = 0; i < x.size(); ++i) {
    // Below zero what is left of x is a factor smaller than any normal float.
    EXPECT_NEAR(y[i], std::max(0.0F, x[i]), 1e-34F * std::abs(x[i])) << x[i];
    EXPECT_NEAR(slope[i], x[i] > 0 ? 1.0F : 0.0F, 1e-30F) << x[i];
  }
}

TEST_P(GeluTest, WorksInPlace) {
  CpuStream stream;
  const std::vector<float> x = normal_values(1001, 1);
  const std::vector<float> dy = normal_values(1001, 2);
  Output y(x);
  gelu_forward(stream, {.form = GetParam(), .y = y.view(), .x = y.view()});
  expect_same_bits("y", y.values(), run_forward(stream, GetParam(), x));
  Output dx(dy);
  gelu_backward(stream, {.form = GetParam(), .dx = dx.view(), .dy = dx.view(), .x = view_of(x)});
  expect_same_bits("dx", dx.values(), run_backward(stream, GetParam(), dy, x));
}

INSTANTIATE_TEST_SUITE_P(Forms, GeluTest, testing::Values(Gelu::kTanh, Gelu::kErf),
                         [](const auto& form) {
                           return form.param == Gelu::kTanh ? "tanh" : "erf";
                         });

}  // namespace
}  // namespace lockstep
