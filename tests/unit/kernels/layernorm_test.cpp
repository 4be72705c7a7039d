#include "kernels/layernorm.h"

#include <gtest/gtest.h>

#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

struct Case {
  int64_t rows;
  int64_t channels;
};
constexpr Case kCases[] = {{1, 1},   {3, 2},     {5, 7},     {1, 129},
                           {33, 48}, {100, 128}, {257, 100}, {70, 1031}};

struct Forward {
  std::vector<float> y, mean, rstd;
};

Forward run_forward(CpuStream& stream, const Case& c, const std::vector<float>& x,
                    const std::vector<float>& gamma, const std::vector<float>& beta) {
  Output y(c.rows * c.channels);
  Output mean(c.rows);
  Output rstd(c.rows);
  layernorm_forward(stream, {.rows = c.rows,
                             .channels = c.channels,
                             .y = y.view(),
                             .mean = mean.view(),
                             .rstd = rstd.view(),
                             .x = view_of(x),
                             .gamma = view_of(gamma),
                             .beta = view_of(beta)});
  return {y.values(), mean.values(), rstd.values()};
}

// What the inputs of a case share.
struct Inputs {
  explicit Inputs(const Case& c)
      : x(normal_values(c.rows * c.channels, 1)),
        gamma(normal_values(c.channels, 2)),
        beta(normal_values(c.channels, 3)),
        dy(normal_values(c.rows * c.channels, 4)),
        dx(normal_values(c.rows * c.channels, 5)),
        dgamma(normal_values(c.channels, 6)),
        dbeta(normal_values(c.channels, 7)) {}
  std::vector<float> x, gamma, beta, dy, dx, dgamma, dbeta;
};

struct Gradient {
  std::vector<float> dx, dgamma, dbeta;
};

Gradient run_backward(CpuStream& stream, const Case& c, const Inputs& in, const Forward& forward,
                      const Gradient& start, bool accumulate) {
  Output dx(start.dx);
  Output dgamma(start.dgamma);
  Output dbeta(start.dbeta);
  layernorm_backward(stream, {.rows = c.rows,
                              .channels = c.channels,
                              .dx = dx.view(),
                              .dgamma = dgamma.view(),
                              .dbeta = dbeta.view(),
                              .dy = view_of(in.dy),
                              .x = view_of(in.x),
                              .mean = view_of(forward.mean),
                              .rstd = view_of(forward.rstd),
                              .gamma = view_of(in.gamma),
                              .accumulate = accumulate});
  return {dx.values(), dgamma.values(), dbeta.values()};
}

// Gradients that nothing was added to: dx starts at zero, the others as poison.
Gradient run_backward(CpuStream& stream, const Case& c, const Inputs& in, const Forward& forward) {
  const std::vector<float> zero(in.x.size());
  const std::vector<float> poison = Output(c.channels).values();
  return run_backward(stream, c, in, forward, {zero, poison, poison}, false);
}

TEST(LayerNorm, ForwardMatchesTheReference) {
  for (const Case& c : kCases) {
    const Inputs in(c);
    Forward out;
    for (auto member : {&Forward::y, &Forward::mean, &Forward::rstd}) {
      at_any_thread_count("layernorm", [&](CpuStream& stream) {
        out = run_forward(stream, c, in.x, in.gamma, in.beta);
        return out.*member;
      });
    }
    const auto plain = naive::layernorm(in.x, in.gamma, in.beta);
    const auto reference =
        naive::layernorm(to_double(in.x), to_double(in.gamma), to_double(in.beta));
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.channels);
    expect_close("y", out.y, plain.y, reference.y);
    expect_close("rstd", out.rstd, plain.rstd, reference.rstd);
    // A mean is small beside the values that it is the mean of.
    EXPECT_LE(relative_error(out.mean, reference.mean),
              2 * relative_error(plain.mean, reference.mean) + 1e-6);
  }
}

TEST(LayerNorm, KeepsItsVarianceUnderALargeMean) {
  const Case c{4, 200};
  Inputs in(c);
  for (float& x : in.x) {
    x += 1000;
  }
  CpuStream stream;
  const auto out = run_forward(stream, c, in.x, in.gamma, in.beta);
  const auto reference = naive::layernorm(to_double(in.x), to_double(in.gamma), to_double(in.beta));
  EXPECT_LE(relative_error(out.rstd, reference.rstd), 1e-6);
  expect_close("y", out.y, naive::layernorm(in.x, in.gamma, in.beta).y, reference.y);
}

TEST(LayerNorm, BackwardMatchesTheReference) {
  for (const Case& c : kCases) {
    const Inputs in(c);
    CpuStream one;
    const Forward forward = run_forward(one, c, in.x, in.gamma, in.beta);
    Gradient out;
    for (auto member : {&Gradient::dx, &Gradient::dgamma, &Gradient::dbeta}) {
      at_any_thread_count("layernorm backward", [&](CpuStream& stream) {
        out = run_backward(stream, c, in, forward);
        return out.*member;
      });
    }
    const auto plain = naive::layernorm_backward(in.dy, in.x, in.gamma);
    const auto reference =
        naive::layernorm_backward(to_double(in.dy), to_double(in.x), to_double(in.gamma));
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.channels);
    if (c.channels > 2) {  // of one or two channels dx is zero up to epsilon: nothing but rounding
      expect_close("dx", out.dx, plain.dx, reference.dx);
    }
    expect_close("dgamma", out.dgamma, plain.dgamma, reference.dgamma);
    expect_close("dbeta", out.dbeta, plain.dbeta, reference.dbeta);
  }
}

TEST(LayerNorm, BackwardAddsFinishedSums) {
  for (const Case& c : kCases) {
    const Inputs in(c);
    CpuStream stream;
    const Forward forward = run_forward(stream, c, in.x, in.gamma, in.beta);
    const Gradient alone = run_backward(stream, c, in, forward);
    const Gradient added = run_backward(stream, c, in, forward, {in.dx, in.dgamma, in.dbeta}, true);
    const auto sum = [](std::vector<float> a, const std::vector<float>& b) {
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] += b[i];
      }
      return a;
    };
    expect_same_bits("dgamma", added.dgamma, sum(in.dgamma, alone.dgamma));
    expect_same_bits("dbeta", added.dbeta, sum(in.dbeta, alone.dbeta));
    expect_same_bits("dx", added.dx, sum(in.dx, alone.dx));
  }
}

}  // namespace
}  // namespace lockstep
