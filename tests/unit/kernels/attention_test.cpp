#include "kernels/attention.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "support/error_of.h"
#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

int64_t qkv_size(const AttentionShape& shape) {
  return 3 * shape.batch * shape.time * shape.heads * shape.head_dim;
}
int64_t rows(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.time;
}

struct Forward {
  std::vector<float> out, lse;
};

Forward run_forward(CpuStream& stream, const AttentionShape& shape, const std::vector<float>& qkv) {
  Output out(qkv_size(shape) / 3);
  Output lse(rows(shape));
  attention_forward(stream,
                    {.shape = shape, .out = out.view(), .lse = lse.view(), .qkv = view_of(qkv)});
  return {out.values(), lse.values()};
}

std::vector<float> run_backward(CpuStream& stream, const AttentionShape& shape,
                                const std::vector<float>& dout, const std::vector<float>& qkv,
                                const Forward& forward) {
  Output dqkv(qkv_size(shape));
  Output delta(rows(shape));
  attention_backward(stream, {.shape = shape,
                              .dqkv = dqkv.view(),
                              .delta = delta.view(),
                              .dout = view_of(dout),
                              .out = view_of(forward.out),
                              .lse = view_of(forward.lse),
                              .qkv = view_of(qkv)});
  return dqkv.values();
}

class AttentionTest : public testing::TestWithParam<AttentionShape> {};

TEST_P(AttentionTest, MatchesTheReference) {
  const AttentionShape shape = GetParam();
  const std::vector<float> qkv = normal_values(qkv_size(shape), 1);
  const std::vector<float> dout = normal_values(qkv_size(shape) / 3, 2);
  Forward forward;
  at_any_thread_count("out", [&](CpuStream& stream) {
    forward = run_forward(stream, shape, qkv);
    return forward.out;
  });
  at_any_thread_count("lse",
                      [&](CpuStream& stream) { return run_forward(stream, shape, qkv).lse; });
  const auto plain = naive::attention(shape, qkv);
  const auto reference = naive::attention(shape, to_double(qkv));
  expect_close("out", forward.out, plain.out, reference.out);
  expect_close("lse", forward.lse, plain.lse, reference.lse);

  const auto dqkv = at_any_thread_count(
      "dqkv", [&](CpuStream& stream) { return run_backward(stream, shape, dout, qkv, forward); });
  expect_close("dqkv", dqkv, naive::attention_backward(shape, dout, qkv),
               naive::attention_backward(shape, to_double(dout), to_double(qkv)));
}

// Scores in the thousands: softmax is one-hot almost everywhere, and nothing overflows.
TEST_P(AttentionTest, SurvivesHugeScores) {
  const AttentionShape shape = GetParam();
  const double scale = 100 / std::sqrt(std::sqrt(static_cast<double>(shape.head_dim)));
  std::vector<float> qkv = normal_values(qkv_size(shape), 1, scale);
  const std::vector<float> dout = normal_values(qkv_size(shape) / 3, 2);
  CpuStream stream;
  const Forward forward = run_forward(stream, shape, qkv);
  const auto reference = naive::attention(shape, to_double(qkv));
  // A score near 1e4 is known to 1e-3 in float, and the probabilities in that proportion.
  EXPECT_LE(relative_error(forward.out, reference.out), 2e-2);
  EXPECT_LE(relative_error(forward.lse, reference.lse), 1e-6);
  for (const float x : run_backward(stream, shape, dout, qkv, forward)) {
    ASSERT_TRUE(std::isfinite(x));
  }
}

// Position by position with a cache gives what all positions at once give.
TEST_P(AttentionTest, DecodeMatchesTheReference) {
  const AttentionShape shape = GetParam();
  const int64_t channels = shape.heads * shape.head_dim;
  const std::vector<float> qkv = normal_values(qkv_size(shape), 1);
  const auto plain = naive::attention(shape, qkv);
  const auto reference = naive::attention(shape, to_double(qkv));
  Output k_cache(shape.time * channels);
  Output v_cache(shape.time * channels);
  std::vector<float> all;
  for (int64_t t = 0; t < shape.time; ++t) {  // the first sequence of the batch
    const std::vector<float> row(qkv.begin() + t * 3 * channels,
                                 qkv.begin() + (t + 1) * 3 * channels);
    const auto decode = [&](CpuStream& stream) {
      Output o(channels);
      attention_decode(stream, {.heads = shape.heads,
                                .head_dim = shape.head_dim,
                                .position = t,
                                .out = o.view(),
                                .k_cache = k_cache.view(),
                                .v_cache = v_cache.view(),
                                .qkv = view_of(row)});
      return o.values();
    };
    CpuStream one;
    const auto out = t % 64 == 63 ? at_any_thread_count("decode", decode) : decode(one);
    all.insert(all.end(), out.begin(), out.end());
  }
  const auto first = static_cast<int64_t>(all.size());
  expect_close("decode", all, {plain.out.begin(), plain.out.begin() + first},
               {reference.out.begin(), reference.out.begin() + first});
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest,
                         testing::Values(AttentionShape{1, 1, 1, 1}, AttentionShape{2, 33, 2, 7},
                                         AttentionShape{1, 63, 3, 48}, AttentionShape{1, 64, 2, 32},
                                         AttentionShape{6, 64, 4, 32},
                                         AttentionShape{1, 100, 2, 64},
                                         AttentionShape{1, 257, 2, 16},
                                         AttentionShape{2, 130, 1, 128},
                                         AttentionShape{1, 777, 1, 40}),
                         [](const auto& shape) {
                           const AttentionShape& s = shape.param;
                           return fmt::format("B{}T{}H{}D{}", s.batch, s.time, s.heads, s.head_dim);
                         });

TEST(Attention, NamesTheViewThatIsTooSmall) {
  const AttentionShape shape = {2, 3, 2, 4};
  std::vector<float> memory(static_cast<size_t>(qkv_size(shape)));
  std::string small;
  const auto view = [&](std::string_view name, int64_t size) {
    return CpuView<float>(memory.data(), name == small ? size - 1 : size);
  };
  CpuStream stream;
  for (const char* name : {"out", "lse", "qkv"}) {
    small = name;
    const std::string error = error_of<InternalError>([&] {
      attention_forward(stream, {.shape = shape,
                                 .out = view("out", qkv_size(shape) / 3),
                                 .lse = view("lse", rows(shape)),
                                 .qkv = view("qkv", qkv_size(shape))});
    });
    EXPECT_THAT(error, testing::HasSubstr("attention_forward: " + small + " has"));
  }
  for (const char* name : {"dqkv", "delta", "dout", "out", "lse", "qkv"}) {
    small = name;
    const std::string error = error_of<InternalError>([&] {
      attention_backward(stream, {.shape = shape,
                                  .dqkv = view("dqkv", qkv_size(shape)),
                                  .delta = view("delta", rows(shape)),
                                  .dout = view("dout", qkv_size(shape) / 3),
                                  .out = view("out", qkv_size(shape) / 3),
                                  .lse = view("lse", rows(shape)),
                                  .qkv = view("qkv", qkv_size(shape))});
    });
    EXPECT_THAT(error, testing::HasSubstr("attention_backward: " + small + " has"));
  }
}

TEST(Attention, DecodesOnlyPositionsOfTheCache) {
  std::vector<float> qkv(3 * 4);
  std::vector<float> out(4);
  std::vector<float> cache(3 * 4);  // three positions
  CpuStream stream;
  const auto error_at = [&](int64_t position) {
    return error_of<InternalError>([&] {
      attention_decode(stream, {.heads = 2,
                                .head_dim = 2,
                                .position = position,
                                .out = {out.data(), 4},
                                .k_cache = {cache.data(), 3 * 4},
                                .v_cache = {cache.data(), 3 * 4},
                                .qkv = view_of(qkv)});
    });
  };
  EXPECT_EQ(error_at(2), "no error");
  EXPECT_THAT(error_at(3), testing::HasSubstr("attention_decode: k_cache has"));
  for (const int64_t position : {int64_t{-1}, int64_t{INT32_MAX}, INT64_MAX}) {
    EXPECT_THAT(error_at(position),
                testing::HasSubstr(fmt::format("attention of position {}", position)));
  }
}

}  // namespace
}  // namespace lockstep
