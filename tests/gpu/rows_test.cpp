// The ops on rows against the references in double: LayerNorm, cross-entropy, embedding.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "gpu/guarded.h"
#include "kernels/cuda/ops.h"
#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

using Floats = std::vector<float>;

Floats plus(Floats a, const Floats& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] += b[i];
  }
  return a;
}

std::vector<int32_t> symbols(int64_t size, int64_t vocabulary, uint64_t seed) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < size; ++i) {
    tokens.push_back(static_cast<int32_t>(random_bits(seed, 0, static_cast<uint64_t>(i)) %
                                          static_cast<uint64_t>(vocabulary)));
  }
  return tokens;
}

struct Rows {
  int64_t rows;
  int64_t channels;
  int64_t shift;  // of every pointer, in floats
};

// One warp and eight to a row, full and in part; rows that no team holds, by size or alignment.
constexpr Rows kRows[] = {
    {1, 1, 0},      {3, 3, 0},      {5, 65, 0},     {7, 4, 0},     {33, 48, 0},  {100, 128, 0},
    {257, 384, 0},  {4099, 384, 0}, {65, 768, 0},   {9, 1000, 0},  {9, 1024, 0}, {70, 1031, 0},
    {300, 1600, 0}, {6, 4096, 0},   {5, 8192, 0},   {3, 10000, 0}, {33, 384, 1}, {9, 768, 2},
    {4, 12000, 3},  {0, 128, 0},    {3000, 100, 1}, {2500, 65, 0}};

struct LayerNormInputs {
  explicit LayerNormInputs(const Rows& c)
      : x(normal_values(c.rows * c.channels, 1)),
        gamma(normal_values(c.channels, 2)),
        beta(normal_values(c.channels, 3)),
        dy(normal_values(c.rows * c.channels, 4)),
        dx(normal_values(c.rows * c.channels, 5)),
        dgamma(normal_values(c.channels, 6)),
        dbeta(normal_values(c.channels, 7)) {}
  Floats x, gamma, beta, dy, dx, dgamma, dbeta;
};

struct Normalised {
  Floats y, mean, rstd;
};

Normalised layernorm_on_gpu(const Rows& c, const LayerNormInputs& in) {
  CudaStream stream;
  Guarded<float> y(stream, c.rows * c.channels, c.shift);
  Guarded<float> mean(stream, c.rows, c.shift);
  Guarded<float> rstd(stream, c.rows, c.shift);
  Guarded<float> x(stream, in.x, c.shift);
  Guarded<float> gamma(stream, in.gamma, c.shift);
  Guarded<float> beta(stream, in.beta, c.shift);
  layernorm_forward(stream, {.rows = c.rows,
                             .channels = c.channels,
                             .y = y.view(),
                             .mean = mean.view(),
                             .rstd = rstd.view(),
                             .x = x.view(),
                             .gamma = gamma.view(),
                             .beta = beta.view()});
  return {y.values(), mean.values(), rstd.values()};
}

struct LayerNormGradient {
  Floats dx, dgamma, dbeta;
};

LayerNormGradient layernorm_backward_on_gpu(const Rows& c, const LayerNormInputs& in,
                                            const LayerNormGradient& start, bool accumulate) {
  const Normalised forward = layernorm_on_gpu(c, in);
  CudaStream stream;
  Guarded<float> dx(stream, start.dx, c.shift);
  Guarded<float> dgamma(stream, start.dgamma, c.shift);
  Guarded<float> dbeta(stream, start.dbeta, c.shift);
  Guarded<float> dy(stream, in.dy, c.shift);
  Guarded<float> x(stream, in.x, c.shift);
  Guarded<float> mean(stream, forward.mean, c.shift);
  Guarded<float> rstd(stream, forward.rstd, c.shift);
  Guarded<float> gamma(stream, in.gamma, c.shift);
  layernorm_backward(stream, {.rows = c.rows,
                              .channels = c.channels,
                              .dx = dx.view(),
                              .dgamma = dgamma.view(),
                              .dbeta = dbeta.view(),
                              .dy = dy.view(),
                              .x = x.view(),
                              .mean = mean.view(),
                              .rstd = rstd.view(),
                              .gamma = gamma.view(),
                              .accumulate = accumulate});
  return {dx.values(), dgamma.values(), dbeta.values()};
}

class GpuRows : public ::testing::TestWithParam<Rows> {
 protected:
  void SetUp() override { require_cuda_device(); }
};
INSTANTIATE_TEST_SUITE_P(Ops, GpuRows, ::testing::ValuesIn(kRows), [](const auto& test) {
  return std::to_string(test.param.rows) + "x" + std::to_string(test.param.channels) + "at" +
         std::to_string(test.param.shift);
});

TEST_P(GpuRows, LayerNormMatchesTheReference) {
  const Rows c = GetParam();
  const LayerNormInputs in(c);
  const Normalised out = layernorm_on_gpu(c, in);
  const auto plain = naive::layernorm(in.x, in.gamma, in.beta);
  const auto reference = naive::layernorm(to_double(in.x), to_double(in.gamma), to_double(in.beta));
  expect_close("y", out.y, plain.y, reference.y);
  expect_close("rstd", out.rstd, plain.rstd, reference.rstd);
  // A mean is small beside the values that it is the mean of.
  EXPECT_LE(relative_error(out.mean, reference.mean),
            2 * relative_error(plain.mean, reference.mean) + 1e-6);
  expect_same_bits("y of two runs", out.y, layernorm_on_gpu(c, in).y);
}

TEST_P(GpuRows, LayerNormBackwardMatchesTheReferenceAndAddsFinishedSums) {
  const Rows c = GetParam();
  const LayerNormInputs in(c);
  const Floats poison(static_cast<size_t>(c.channels), std::nanf(""));
  const LayerNormGradient start = {Floats(in.x.size()), poison, poison};
  const auto out = layernorm_backward_on_gpu(c, in, start, false);
  const auto plain = naive::layernorm_backward(in.dy, in.x, in.gamma);
  const auto reference =
      naive::layernorm_backward(to_double(in.dy), to_double(in.x), to_double(in.gamma));
  if (c.channels > 3) {  // of fewer channels dx nearly cancels: hardly anything but rounding
    expect_close("dx", out.dx, plain.dx, reference.dx);
  }
  expect_close("dgamma", out.dgamma, plain.dgamma, reference.dgamma);
  expect_close("dbeta", out.dbeta, plain.dbeta, reference.dbeta);

  const auto again = layernorm_backward_on_gpu(c, in, start, false);
  expect_same_bits("dx of two runs", out.dx, again.dx);
  expect_same_bits("dgamma of two runs", out.dgamma, again.dgamma);
  expect_same_bits("dbeta of two runs", out.dbeta, again.dbeta);

  const auto added = layernorm_backward_on_gpu(c, in, {in.dx, in.dgamma, in.dbeta}, true);
  expect_same_bits("dx added to", added.dx, plus(in.dx, out.dx));
  expect_same_bits("dgamma added to", added.dgamma, plus(in.dgamma, out.dgamma));
  expect_same_bits("dbeta added to", added.dbeta, plus(in.dbeta, out.dbeta));
}

TEST(GpuLayerNorm, KeepsItsVarianceUnderALargeMean) {
  require_cuda_device();
  for (const Rows& c : {Rows{4, 200, 0}, Rows{4, 2000, 0}, Rows{4, 201, 0}}) {
    LayerNormInputs in(c);
    for (float& x : in.x) {
      x += 1000;
    }
    const auto reference =
        naive::layernorm(to_double(in.x), to_double(in.gamma), to_double(in.beta));
    EXPECT_LE(relative_error(layernorm_on_gpu(c, in).rstd, reference.rstd), 1e-6);
  }
}

struct Logits {
  int64_t rows;
  int64_t vocabulary;
  int64_t padded_vocabulary;
  int64_t shift;
};
constexpr Logits kLogits[] = {{1, 1, 1, 0},         {3, 2, 16, 0},        {100, 65, 80, 0},
                              {4097, 65, 65, 0},    {384, 65, 65, 3},     {7, 128, 129, 0},
                              {9, 1000, 1001, 0},   {5, 1000, 1024, 1},   {6, 1025, 1025, 0},
                              {6, 1500, 1536, 0},   {5, 50257, 50304, 0}, {300, 50257, 50304, 0},
                              {3, 50257, 50304, 1}, {2, 50257, 50257, 0}, {3, 150001, 150016, 0}};
constexpr float kScale = 1.0F / 384;

// N(0, 3²); the padding holds what must not be read: infinity.
Floats logits_of(const Logits& c, double stddev = 3) {
  Floats logits = normal_values(c.rows * c.padded_vocabulary, 1, stddev);
  for (int64_t i = 0; i < c.rows * c.padded_vocabulary; ++i) {
    if (i % c.padded_vocabulary >= c.vocabulary) {
      logits[static_cast<size_t>(i)] = std::numeric_limits<float>::infinity();
    }
  }
  return logits;
}

std::vector<int32_t> targets_of(const Logits& c) {
  std::vector<int32_t> targets = symbols(c.rows, c.vocabulary, 2);
  targets.back() = static_cast<int32_t>(c.vocabulary - 1);
  return targets;
}

struct Classified {
  Floats losses, logits;
};

Classified cross_entropy_on_gpu(const Logits& c, const Floats& start,
                                const std::vector<int32_t>& targets, bool gradient) {
  CudaStream stream;
  Guarded<float> losses(stream, c.rows, c.shift);
  Guarded<float> logits(stream, start, c.shift);
  Guarded<int32_t> on_device(stream, targets, c.shift);
  cross_entropy(stream, {.rows = c.rows,
                         .vocabulary = c.vocabulary,
                         .padded_vocabulary = c.padded_vocabulary,
                         .gradient = gradient,
                         .gradient_scale = kScale,
                         .losses = losses.view(),
                         .logits = logits.view(),
                         .targets = on_device.view()});
  return {losses.values(), logits.values()};
}

class GpuCrossEntropy : public ::testing::TestWithParam<Logits> {
 protected:
  void SetUp() override { require_cuda_device(); }
};
INSTANTIATE_TEST_SUITE_P(Ops, GpuCrossEntropy, ::testing::ValuesIn(kLogits), [](const auto& test) {
  return std::to_string(test.param.rows) + "x" + std::to_string(test.param.vocabulary) + "of" +
         std::to_string(test.param.padded_vocabulary) + "at" + std::to_string(test.param.shift);
});

TEST_P(GpuCrossEntropy, MatchesTheReference) {
  const Logits c = GetParam();
  const Floats logits = logits_of(c);
  const auto targets = targets_of(c);
  const Classified out = cross_entropy_on_gpu(c, logits, targets, true);
  const auto plain = naive::cross_entropy(c.vocabulary, kScale, logits, targets);
  const auto reference =
      naive::cross_entropy(c.vocabulary, static_cast<double>(kScale), to_double(logits), targets);
  // A loss is a difference of numbers as large as the logits, whose rounding it inherits.
  EXPECT_LE(relative_error(out.losses, reference.losses),
            2 * relative_error(plain.losses, reference.losses) + 2e-7);
  expect_close("dlogits", out.logits, plain.dlogits, reference.dlogits);
  for (int64_t i = 0; i < c.rows * c.padded_vocabulary; ++i) {
    if (i % c.padded_vocabulary >= c.vocabulary) {
      ASSERT_EQ(out.logits[static_cast<size_t>(i)], 0.0F);
    }
  }
  const Classified again = cross_entropy_on_gpu(c, logits, targets, true);
  expect_same_bits("losses of two runs", out.losses, again.losses);
  expect_same_bits("gradients of two runs", out.logits, again.logits);
  const Classified without = cross_entropy_on_gpu(c, logits, targets, false);
  expect_same_bits("losses without a gradient", out.losses, without.losses);
  expect_same_bits("logits without a gradient", logits, without.logits);
}

TEST(GpuCrossEntropyValues, SurvivesHugeLogitsAndShowsANan) {
  require_cuda_device();
  for (const Logits& c :
       {Logits{3, 65, 80, 0}, Logits{3, 1000, 1000, 0}, Logits{3, 5000, 5008, 0}}) {
    SCOPED_TRACE(c.vocabulary);
    Floats logits = logits_of(c, 3000);
    const auto targets = targets_of(c);
    const Classified out = cross_entropy_on_gpu(c, logits, targets, true);
    const auto reference =
        naive::cross_entropy(c.vocabulary, static_cast<double>(kScale), to_double(logits), targets);
    EXPECT_LE(relative_error(out.losses, reference.losses), 1e-6);
    EXPECT_LE(relative_error(out.logits, reference.dlogits), 1e-6);
    for (const int64_t place : {int64_t{0}, int64_t{17}, c.vocabulary - 1}) {
      logits = logits_of(c);
      logits[static_cast<size_t>(c.padded_vocabulary + place)] = std::nanf("");
      const Floats losses = cross_entropy_on_gpu(c, logits, targets, true).losses;
      EXPECT_FALSE(std::isnan(losses[0]));
      EXPECT_TRUE(std::isnan(losses[1])) << place;
    }
  }
}

struct Tokens {
  int64_t batch;
  int64_t time;
  int64_t block_size;
  int64_t channels;
  int64_t vocabulary;
  int64_t shift;
};
// The last: one symbol for everything.
constexpr Tokens kTokens[] = {{1, 1, 1, 1, 1, 0},         {2, 3, 5, 7, 4, 0},
                              {6, 64, 64, 128, 80, 0},    {3, 33, 40, 100, 65, 0},
                              {2, 100, 128, 20, 5003, 0}, {1, 700, 700, 33, 3, 0},
                              {16, 256, 256, 384, 65, 0}, {4, 1000, 1024, 768, 50304, 0},
                              {7, 300, 301, 64, 65, 1},   {0, 8, 8, 64, 65, 0},
                              {8, 512, 512, 132, 300, 0}, {3, 2000, 2000, 260, 1, 0}};

struct EmbeddingInputs {
  explicit EmbeddingInputs(const Tokens& c)
      : wte(normal_values(c.vocabulary * c.channels, 1)),
        wpe(normal_values(c.block_size * c.channels, 2)),
        head(normal_values(c.vocabulary * c.channels, 3)),
        dx(normal_values(c.batch * c.time * c.channels, 4)),
        dwte(normal_values(c.vocabulary * c.channels, 5)),
        dwpe(normal_values(c.block_size * c.channels, 6)),
        tokens(symbols(c.batch * c.time, c.vocabulary, 7)) {}
  Floats wte, wpe, head, dx, dwte, dwpe;
  std::vector<int32_t> tokens;
};

struct EmbeddingGradient {
  Floats dwte, dwpe;
};

EmbeddingGradient embedding_backward_on_gpu(const Tokens& c, const EmbeddingInputs& in,
                                            const EmbeddingGradient& start, bool accumulate) {
  CudaStream stream;
  Guarded<float> dwte(stream, start.dwte, c.shift);
  Guarded<float> dwpe(stream, start.dwpe, c.shift);
  Guarded<float> head(stream, in.head, c.shift);
  Guarded<float> dx(stream, in.dx, c.shift);
  Guarded<int32_t> tokens(stream, in.tokens, c.shift);
  embedding_backward(stream, {.batch = c.batch,
                              .time = c.time,
                              .channels = c.channels,
                              .vocabulary = c.vocabulary,
                              .dwte = dwte.view(),
                              .dwpe = dwpe.view(),
                              .head = head.view(),
                              .dx = dx.view(),
                              .tokens = tokens.view(),
                              .accumulate = accumulate});
  return {dwte.values(), dwpe.values()};
}

class GpuEmbedding : public ::testing::TestWithParam<Tokens> {
 protected:
  void SetUp() override { require_cuda_device(); }
};
INSTANTIATE_TEST_SUITE_P(Ops, GpuEmbedding, ::testing::ValuesIn(kTokens));

TEST_P(GpuEmbedding, ForwardIsOneAddition) {
  const Tokens c = GetParam();
  const EmbeddingInputs in(c);
  CudaStream stream;
  Guarded<float> x(stream, c.batch * c.time * c.channels, c.shift);
  Guarded<int32_t> tokens(stream, in.tokens, c.shift);
  Guarded<float> wte(stream, in.wte, c.shift);
  Guarded<float> wpe(stream, in.wpe, c.shift);
  embedding_forward(stream, {.batch = c.batch,
                             .time = c.time,
                             .channels = c.channels,
                             .x = x.view(),
                             .tokens = tokens.view(),
                             .wte = wte.view(),
                             .wpe = wpe.view()});
  Floats used = in.wpe;
  used.resize(static_cast<size_t>(c.time * c.channels));
  expect_same_bits("x", x.values(), naive::embedding(c.time, in.tokens, in.wte, used));
}

TEST_P(GpuEmbedding, BackwardMatchesTheReferenceAndAddsFinishedSums) {
  const Tokens c = GetParam();
  const EmbeddingInputs in(c);
  const EmbeddingGradient poison = {Floats(in.dwte.size(), std::nanf("")),
                                    Floats(in.dwpe.size(), std::nanf(""))};
  const auto out = embedding_backward_on_gpu(c, in, poison, false);
  if (c.batch > 0) {
    const auto plain = naive::embedding_backward(c.time, c.block_size, in.tokens, in.head, in.dx);
    const auto reference = naive::embedding_backward(c.time, c.block_size, in.tokens,
                                                     to_double(in.head), to_double(in.dx));
    expect_close("dwte", out.dwte, plain.dwte, reference.dwte);
    expect_close("dwpe", out.dwpe, plain.dwpe, reference.dwpe);
  } else {
    expect_same_bits("dwte of no tokens", out.dwte, in.head);
    expect_same_bits("dwpe of no tokens", out.dwpe, Floats(in.dwpe.size()));
  }
  const auto again = embedding_backward_on_gpu(c, in, poison, false);
  expect_same_bits("dwte of two runs", out.dwte, again.dwte);
  expect_same_bits("dwpe of two runs", out.dwpe, again.dwpe);
  const auto added = embedding_backward_on_gpu(c, in, {in.dwte, in.dwpe}, true);
  expect_same_bits("dwte added to", added.dwte, plus(in.dwte, out.dwte));
  expect_same_bits("dwpe added to", added.dwpe, plus(in.dwpe, out.dwpe));
}

}  // namespace
}  // namespace lockstep
