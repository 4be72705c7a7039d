#include "kernels/weight_gradient.h"

#include <gtest/gtest.h>

#include "kernels/gemm.h"
#include "kernels/layernorm.h"
#include "kernels/reduce.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

struct Case {
  int64_t rows;
  int64_t in;
  int64_t out;
};
constexpr Case kCases[] = {{1, 1, 1}, {5, 7, 3}, {33, 48, 20}, {257, 100, 65}};

// The ops that it is made of, with the norm's output kept: the same bits.
TEST(WeightGradient, EqualsItsParts) {
  for (const Case& c : kCases) {
    const std::vector<float> x = normal_values(c.rows * c.in, 1);
    const std::vector<float> gamma = normal_values(c.in, 2);
    const std::vector<float> beta = normal_values(c.in, 3);
    const std::vector<float> dy = normal_values(c.rows * c.out, 4);
    const std::vector<float> weight = normal_values(c.in * c.out, 5);
    const std::vector<float> bias = normal_values(c.out, 6);
    CpuStream stream;
    Output y(c.rows * c.in);
    Output mean(c.rows);
    Output rstd(c.rows);
    layernorm_forward(stream, {.rows = c.rows,
                               .channels = c.in,
                               .y = y.view(),
                               .mean = mean.view(),
                               .rstd = rstd.view(),
                               .x = view_of(x),
                               .gamma = view_of(gamma),
                               .beta = view_of(beta)});
    for (const bool accumulate : {false, true}) {
      for (const bool normed : {false, true}) {
        Output wanted_weight(weight);
        Output wanted_bias(bias);
        gemm(stream, {.m = c.out,
                      .n = c.in,
                      .k = c.rows,
                      .trans_a = Transpose::kYes,
                      .a = view_of(dy),
                      .b = normed ? CpuView<const float>(y.view()) : view_of(x),
                      .c = wanted_weight.view(),
                      .accumulate = accumulate});
        column_sum(stream, {.rows = c.rows,
                            .columns = c.out,
                            .out = wanted_bias.view(),
                            .in = view_of(dy),
                            .accumulate = accumulate});
        Output memory(c.rows * c.in);
        WeightGradient<CpuDevice> args = {.rows = c.rows,
                                          .in = c.in,
                                          .out = c.out,
                                          .weight = {},
                                          .bias = {},
                                          .dy = view_of(dy),
                                          .x = view_of(x),
                                          .accumulate = accumulate};
        Output got_weight(weight);
        Output got_bias(bias);
        args.weight = got_weight.view();
        args.bias = got_bias.view();
        if (normed) {
          args.norm = {mean.view(), rstd.view(), view_of(gamma), view_of(beta), memory.view()};
        }
        weight_gradient(stream, args);
        expect_same_bits("weight", got_weight.values(), wanted_weight.values());
        expect_same_bits("bias", got_bias.values(), wanted_bias.values());
        memory.values();
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
