// Every implementation of attention on the GPU against double precision.
#include "kernels/cuda/attention/attention.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "gpu/guarded.h"
#include "kernels/cuda/ops.h"
#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

constexpr AttentionKind kKinds[] = {AttentionKind::kUnfused, AttentionKind::kFlashFp32,
                                    AttentionKind::kFlashTf32};

const char* name_of(AttentionKind kind) {
  return kind == AttentionKind::kUnfused     ? "unfused"
         : kind == AttentionKind::kFlashFp32 ? "flash fp32"
                                             : "flash TF32";
}

int64_t channels(const AttentionShape& shape) {
  return shape.heads * shape.head_dim;
}
int64_t qkv_size(const AttentionShape& shape) {
  return 3 * shape.batch * shape.time * channels(shape);
}
int64_t rows(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.time;
}

struct Forward {
  std::vector<float> out, lse;
};

Forward run_forward(CudaStream& stream, AttentionKind kind, const AttentionShape& shape,
                    const std::vector<float>& qkv, int64_t shift = 0) {
  Guarded<float> in(stream, qkv, shift);
  Guarded<float> out(stream, qkv_size(shape) / 3, shift);
  Guarded<float> lse(stream, rows(shape), shift);
  attention_forward(stream, kind,
                    {.shape = shape, .out = out.view(), .lse = lse.view(), .qkv = in.view()});
  return {out.values(), lse.values()};
}

std::vector<float> run_backward(CudaStream& stream, AttentionKind kind, const AttentionShape& shape,
                                const std::vector<float>& dout, const std::vector<float>& qkv,
                                const Forward& forward, int64_t shift = 0) {
  Guarded<float> in(stream, qkv, shift);
  Guarded<float> out(stream, forward.out, shift);
  Guarded<float> lse(stream, forward.lse, shift);
  Guarded<float> out_gradient(stream, dout, shift);
  Guarded<float> dqkv(stream, qkv_size(shape), shift);
  Guarded<float> delta(stream, rows(shape), shift);
  attention_backward(stream, kind,
                     {.shape = shape,
                      .dqkv = dqkv.view(),
                      .delta = delta.view(),
                      .dout = out_gradient.view(),
                      .out = out.view(),
                      .lse = lse.view(),
                      .qkv = in.view()});
  delta.values();
  return dqkv.values();
}

float in_tf32(float value) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000U) & ~0x1FFFU);
}

// Attention in plain loops, with every factor of a product rounded to TF32.
struct PlainTf32 {
  std::vector<float> out, lse, dqkv;

  PlainTf32(const AttentionShape& shape, const std::vector<float>& dout,
            const std::vector<float>& qkv)
      : out(qkv.size() / 3), lse(static_cast<size_t>(rows(shape))), dqkv(qkv.size()) {
    for (int64_t row = 0; row < rows(shape); ++row) {
      add_row(shape, dout, qkv, row);
    }
  }

 private:
  static double dot(const float* a, const float* b, int64_t count) {
    double sum = 0;
    for (int64_t d = 0; d < count; ++d) {
      sum += static_cast<double>(in_tf32(a[d])) * static_cast<double>(in_tf32(b[d]));
    }
    return sum;
  }
  static void add(float* to, float factor, const float* from, int64_t count, float scale = 1) {
    for (int64_t d = 0; d < count; ++d) {
      to[d] += scale * in_tf32(factor) * in_tf32(from[d]);
    }
  }

  void add_row(const AttentionShape& shape, const std::vector<float>& dout,
               const std::vector<float>& qkv, int64_t row) {
    const int64_t t = row % shape.time;
    const int64_t head = row / shape.time;
    const int64_t width = shape.head_dim;
    const int64_t stride = 3 * channels(shape);
    const int64_t first = head / shape.heads * shape.time * stride + head % shape.heads * width;
    const int64_t k = first + channels(shape);
    const int64_t v = k + channels(shape);
    const int64_t at =
        (head / shape.heads * shape.time + t) * channels(shape) + head % shape.heads * width;
    const float scale = 1 / std::sqrt(static_cast<float>(width));
    std::vector<float> p;
    for (int64_t j = 0; j <= t; ++j) {
      p.push_back(scale *
                  static_cast<float>(dot(&qkv[static_cast<size_t>(first + t * stride)],
                                         &qkv[static_cast<size_t>(k + j * stride)], width)));
    }
    const float max = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (const float s : p) {
      sum += std::exp(static_cast<double>(s - max));
    }
    const float row_lse = max + static_cast<float>(std::log(sum));
    lse[static_cast<size_t>(row)] = row_lse;
    double delta = 0;
    for (int64_t j = 0; j <= t; ++j) {
      float& probability = p[static_cast<size_t>(j)];
      probability = std::exp(probability - row_lse);
      add(&out[static_cast<size_t>(at)], probability, &qkv[static_cast<size_t>(v + j * stride)],
          width);
    }
    for (int64_t d = 0; d < width; ++d) {
      delta += static_cast<double>(dout[static_cast<size_t>(at + d)]) *
               static_cast<double>(out[static_cast<size_t>(at + d)]);
    }
    for (int64_t j = 0; j <= t; ++j) {
      const float probability = p[static_cast<size_t>(j)];
      const auto dp = static_cast<float>(
          dot(&dout[static_cast<size_t>(at)], &qkv[static_cast<size_t>(v + j * stride)], width));
      const float ds = probability * (dp - static_cast<float>(delta));
      add(&dqkv[static_cast<size_t>(first + t * stride)], ds,
          &qkv[static_cast<size_t>(k + j * stride)], width, scale);
      add(&dqkv[static_cast<size_t>(k + j * stride)], ds,
          &qkv[static_cast<size_t>(first + t * stride)], width, scale);
      add(&dqkv[static_cast<size_t>(v + j * stride)], probability, &dout[static_cast<size_t>(at)],
          width);
    }
  }
};

// The gradients of q (0), k (1) or v (2) of all positions.
template <class Real>
std::vector<Real> part_of(const AttentionShape& shape, const std::vector<Real>& dqkv, int part) {
  std::vector<Real> values;
  const auto width = static_cast<size_t>(channels(shape));
  for (size_t row = static_cast<size_t>(part) * width; row < dqkv.size(); row += 3 * width) {
    values.insert(values.end(), dqkv.begin() + static_cast<std::ptrdiff_t>(row),
                  dqkv.begin() + static_cast<std::ptrdiff_t>(row + width));
  }
  return values;
}

void expect_gradients(const AttentionShape& shape, const std::vector<float>& dqkv,
                      const std::vector<float>& plain, const std::vector<double>& reference) {
  const char* const names[] = {"dq", "dk", "dv"};
  for (int part = 0; part < 3; ++part) {
    const std::vector<float> values = part_of(shape, dqkv, part);
    if (shape.time == 1 && part < 2) {
      // Nothing but what the rounding of two equal sums, dp and delta, leaves of their difference.
      EXPECT_LE(
          relative_error(values, std::vector<double>(values.size())),
          std::max(relative_error(part_of(shape, plain, part), part_of(shape, reference, part)),
                   1e-5))
          << names[part];
      continue;
    }
    expect_close(names[part], values, part_of(shape, plain, part), part_of(shape, reference, part));
  }
}

// One shape's inputs and what they should give.
struct Case {
  AttentionShape shape;
  std::vector<float> qkv;
  std::vector<float> dout;
  naive::Attention<float> plain;
  std::vector<float> plain_dqkv;
  naive::Attention<double> reference;
  std::vector<double> reference_dqkv;
  PlainTf32 tf32;

  explicit Case(const AttentionShape& of)
      : shape(of),
        qkv(normal_values(qkv_size(of), 1)),
        dout(normal_values(qkv_size(of) / 3, 2)),
        plain(naive::attention(of, qkv)),
        plain_dqkv(naive::attention_backward(of, dout, qkv)),
        reference(naive::attention(of, to_double(qkv))),
        reference_dqkv(naive::attention_backward(of, to_double(dout), to_double(qkv))),
        tf32(of, dout, qkv) {}

  void check(AttentionKind kind, int64_t shift) const {
    SCOPED_TRACE(name_of(kind));
    CudaStream stream;
    const bool rounds = kind == AttentionKind::kFlashTf32;
    const Forward forward = run_forward(stream, kind, shape, qkv, shift);
    expect_close("out", forward.out, rounds ? tf32.out : plain.out, reference.out);
    expect_close("lse", forward.lse, rounds ? tf32.lse : plain.lse, reference.lse);
    const Forward again = run_forward(stream, kind, shape, qkv, shift);
    expect_same_bits("out", forward.out, again.out);
    expect_same_bits("lse", forward.lse, again.lse);
    const auto dqkv = run_backward(stream, kind, shape, dout, qkv, forward, shift);
    expect_gradients(shape, dqkv, rounds ? tf32.dqkv : plain_dqkv, reference_dqkv);
    expect_same_bits("dqkv", dqkv, run_backward(stream, kind, shape, dout, qkv, forward, shift));
  }
};

class GpuAttention : public testing::TestWithParam<AttentionShape> {
 protected:
  void SetUp() override { require_cuda_device(); }
};

TEST_P(GpuAttention, MatchesDoublePrecision) {
  const Case with(GetParam());
  for (const AttentionKind kind : kKinds) {
    if (kind == AttentionKind::kUnfused || GetParam().head_dim <= kFlashHeadDim) {
      with.check(kind, 0);
    }
  }
}

std::string name_of_shape(const testing::TestParamInfo<AttentionShape>& info) {
  const AttentionShape& s = info.param;
  return fmt::format("B{}T{}H{}D{}", s.batch, s.time, s.heads, s.head_dim);
}

// Below, at and beyond the edges of every tile, and several of them; heads that fill none.
INSTANTIATE_TEST_SUITE_P(
    Shapes, GpuAttention,
    testing::Values(
        AttentionShape{1, 1, 1, 64}, AttentionShape{2, 33, 3, 64}, AttentionShape{1, 63, 2, 64},
        AttentionShape{2, 100, 2, 64}, AttentionShape{2, 256, 2, 64}, AttentionShape{1, 512, 1, 64},
        AttentionShape{1, 777, 1, 64}, AttentionShape{1, 1000, 1, 64},
        AttentionShape{1, 1024, 1, 64}, AttentionShape{1, 2048, 1, 64},
        AttentionShape{2, 512, 3, 64}, AttentionShape{3, 640, 2, 64}, AttentionShape{2, 100, 2, 32},
        AttentionShape{1, 300, 1, 32}, AttentionShape{2, 100, 2, 96}, AttentionShape{1, 300, 1, 96},
        AttentionShape{2, 100, 2, 128}, AttentionShape{1, 300, 1, 128}, AttentionShape{1, 1, 1, 1},
        AttentionShape{2, 65, 3, 7}, AttentionShape{1, 130, 2, 40}, AttentionShape{1, 70, 2, 80},
        AttentionShape{1, 70, 1, 127}, AttentionShape{1, 70, 2, 130},
        AttentionShape{1, 129, 1, 256}),
    name_of_shape);

class GpuAttentionOps : public testing::Test {
 protected:
  void SetUp() override { require_cuda_device(); }
};

TEST_F(GpuAttentionOps, NeedNoAlignment) {
  for (const AttentionShape shape : {AttentionShape{2, 70, 2, 64}, AttentionShape{1, 512, 2, 64}}) {
    const Case with(shape);
    for (const AttentionKind kind : kKinds) {
      with.check(kind, 1);
    }
  }
}

// Scores up to 1e4: softmax is one-hot almost everywhere, and nothing overflows.
void survive_huge_scores(const AttentionShape& shape) {
  const std::vector<float> qkv = normal_values(qkv_size(shape), 1, 50);
  const std::vector<float> dout = normal_values(qkv_size(shape) / 3, 2);
  const auto reference = naive::attention(shape, to_double(qkv));
  const PlainTf32 tf32(shape, dout, qkv);
  CudaStream stream;
  for (const AttentionKind kind : kKinds) {
    SCOPED_TRACE(name_of(kind));
    const Forward forward = run_forward(stream, kind, shape, qkv);
    if (kind == AttentionKind::kFlashTf32) {
      // Where two scores are close, TF32 may prefer the other: only lse is comparable.
      EXPECT_LE(relative_error(forward.lse, reference.lse), 1e-3);
      EXPECT_LE(relative_error(forward.out, to_double(tf32.out)), 2e-2);
    } else {
      EXPECT_LE(relative_error(forward.out, reference.out), 2e-2);
      EXPECT_LE(relative_error(forward.lse, reference.lse), 1e-6);
    }
    for (const float x : run_backward(stream, kind, shape, dout, qkv, forward)) {
      ASSERT_TRUE(std::isfinite(x));
    }
  }
}

TEST_F(GpuAttentionOps, SurviveHugeScores) {
  survive_huge_scores({1, 300, 2, 64});
  survive_huge_scores({1, 512, 2, 64});
}

// What a GPU's arithmetic makes of an invalid operation, in one query: rounding keeps it.
void keep_what_is_not_a_number(const AttentionShape& shape) {
  constexpr int64_t kQuery = 40;
  std::vector<float> qkv = normal_values(qkv_size(shape), 1);
  qkv[kQuery * 3 * 64 + 5] = std::bit_cast<float>(0x7FFFFFFFU);
  const std::vector<float> dout = normal_values(qkv_size(shape) / 3, 2);
  CudaStream stream;
  for (const AttentionKind kind : kKinds) {
    SCOPED_TRACE(name_of(kind));
    const Forward forward = run_forward(stream, kind, shape, qkv);
    const auto dqkv = run_backward(stream, kind, shape, dout, qkv, forward);
    for (int64_t at = 0; at < shape.time * 64; ++at) {
      const bool reached = at / 64 == kQuery;
      EXPECT_EQ(std::isnan(forward.out[static_cast<size_t>(at)]), reached) << at;
      EXPECT_EQ(std::isnan(dqkv[static_cast<size_t>(at / 64 * 3 * 64 + at % 64)]), reached) << at;
    }
  }
}

TEST_F(GpuAttentionOps, KeepWhatIsNotANumber) {
  keep_what_is_not_a_number({1, 100, 1, 64});
  keep_what_is_not_a_number({1, 640, 1, 64});
}

TEST_F(GpuAttentionOps, FollowTheStreamsPrecision) {
  const AttentionShape shape = {1, 70, 2, 64};
  const std::vector<float> qkv = normal_values(qkv_size(shape), 1);
  for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
    CudaStream stream(precision);
    Guarded<float> in(stream, qkv, 0);
    Guarded<float> out(stream, qkv_size(shape) / 3, 0);
    Guarded<float> lse(stream, rows(shape), 0);
    attention_forward(stream,
                      {.shape = shape, .out = out.view(), .lse = lse.view(), .qkv = in.view()});
    const AttentionKind kind =
        precision == Precision::kFp32 ? AttentionKind::kFlashFp32 : AttentionKind::kFlashTf32;
    expect_same_bits("out", out.values(), run_forward(stream, kind, shape, qkv).out);
  }
}

TEST_F(GpuAttentionOps, RefuseWhatTheyDoNotCompute) {
  CudaStream stream;
  CudaBuffer<float> memory(3 * 257);
  const auto forward = [&](AttentionKind kind, int64_t head_dim) {
    attention_forward(stream, kind,
                      {.shape = {1, 1, 1, head_dim},
                       .out = memory.view(),
                       .lse = memory.view(),
                       .qkv = std::as_const(memory).view()});
  };
  EXPECT_THROW(forward(AttentionKind::kUnfused, 257), InternalError);
  EXPECT_THROW(forward(AttentionKind::kFlashFp32, 129), InternalError);
  EXPECT_THROW(forward(AttentionKind::kFlashTf32, 129), InternalError);
}

class GpuDecode : public GpuAttention {};

// Position by position with a cache gives what all positions at once give.
TEST_P(GpuDecode, MatchesTheReference) {
  const AttentionShape shape = GetParam();
  const int64_t width = channels(shape);
  const std::vector<float> qkv = normal_values(qkv_size(shape), 1);
  CudaStream stream;
  Guarded<float> in(stream, qkv, 0);
  Guarded<float> k_cache(stream, shape.time * width, 0);
  Guarded<float> v_cache(stream, shape.time * width, 0);
  Guarded<float> out(stream, shape.time * width, 0);
  for (int64_t t = 0; t < shape.time; ++t) {
    attention_decode(stream, {.heads = shape.heads,
                              .head_dim = shape.head_dim,
                              .position = t,
                              .out = out.view().subview({t * width, (t + 1) * width}),
                              .k_cache = k_cache.view(),
                              .v_cache = v_cache.view(),
                              .qkv = in.view().subview({t * 3 * width, (t + 1) * 3 * width})});
  }
  expect_close("decode", out.values(), naive::attention(shape, qkv).out,
               naive::attention(shape, to_double(qkv)).out);
  expect_same_bits("k_cache", k_cache.values(), part_of(shape, qkv, 1));
  expect_same_bits("v_cache", v_cache.values(), part_of(shape, qkv, 2));
}

INSTANTIATE_TEST_SUITE_P(Shapes, GpuDecode,
                         testing::Values(AttentionShape{1, 1, 1, 1}, AttentionShape{1, 70, 2, 7},
                                         AttentionShape{1, 200, 3, 64},
                                         AttentionShape{1, 100, 1, 256}),
                         name_of_shape);

}  // namespace
}  // namespace lockstep
