#include "core/model/gpt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "core/device/cpu_device.h"
#include "core/optim/optimizer.h"
#include "unit/model/reference_device.h"
#include "unit/model/tiny_gpt.h"

namespace lockstep {
namespace {

GptConfig small() {
  return {.vocab_size = 65, .block_size = 33, .n_layer = 2, .n_head = 3, .n_embd = 48};
}

std::vector<float> gradients_after(TinyGpt<CpuDevice>& gpt, CpuStream& stream) {
  gpt.forward(stream);
  gpt.model.backward(stream, false, {});
  return gpt.gradient_values();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Gpt, HasTheSameBitsAtAnyNumberOfThreads) {
  std::vector<float> first;
  float first_loss = 0;
  for (const int threads : {1, 2, 3}) {
    TinyGpt<CpuDevice> gpt(small(), 3, 33);
    CpuStream stream(threads);
    const std::vector<float> gradients = gradients_after(gpt, stream);
    if (threads == 1) {
      first = gradients;
      first_loss = gpt.loss.view()[0];
    }
    EXPECT_TRUE(same_bits(gradients, first)) << threads << " threads";
    EXPECT_EQ(gpt.loss.view()[0], first_loss) << threads << " threads";
  }
}

TEST(Gpt, AgreesWithTheReferenceDevice) {
  TinyGpt<CpuDevice> gpt(small(), 2, 33);
  TinyGpt<ReferenceDevice> reference(small(), 2, 33);
  CpuStream stream;
  ReferenceStream reference_stream;
  const std::vector<float> gradients = gradients_after(gpt, stream);
  reference.forward(reference_stream);
  reference.model.backward(reference_stream, false, {});
  const std::vector<float> expected = reference.gradient_values();
  EXPECT_NEAR(gpt.loss.view()[0], reference.loss.view()[0], 1e-5);
  for (const ParamSpec& spec : gpt.table.specs()) {
    float largest = 0;
    float difference = 0;
    for (auto i = static_cast<size_t>(spec.range.begin); i < static_cast<size_t>(spec.range.end);
         ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      difference = std::max(difference, std::abs(expected[i] - gradients[i]));
    }
    EXPECT_LT(difference, 1e-5F * largest) << spec.name;
  }
}

// What lets one rank with two micro-batches and two ranks with one each give the same bits.
TEST(Gpt, AccumulatesFinishedMicroGradients) {
  const GptConfig config = small();
  TinyGpt<CpuDevice> gpt(config, 2, 33);
  CpuStream stream;
  const auto batch = [&](int64_t half) {
    const std::vector<int32_t> tokens = formula_tokens("tokens", config.vocab_size, 2 * 66 + 1);
    const auto begin = tokens.begin() + half * 66;
    gpt.set_batch({begin, begin + 66}, {begin + 1, begin + 67});
  };
  batch(0);
  const std::vector<float> first = gradients_after(gpt, stream);
  batch(1);
  const std::vector<float> second = gradients_after(gpt, stream);
  batch(0);
  gradients_after(gpt, stream);
  batch(1);
  gpt.forward(stream);
  gpt.model.backward(stream, true, {});
  std::vector<float> sums(first.size());
  std::transform(first.begin(), first.end(), second.begin(), sums.begin(),
                 [](float a, float b) { return a + b; });
  EXPECT_FALSE(same_bits(first, second));
  EXPECT_TRUE(same_bits(gpt.gradient_values(), sums));
}

TEST(Gpt, ScalesTheGradientAndNotTheLoss) {
  TinyGpt<CpuDevice> gpt(small(), 2, 33);
  CpuStream stream;
  const float loss = gpt.forward(stream, 1.0F);
  gpt.model.backward(stream, false, {});
  std::vector<float> expected = gpt.gradient_values();
  for (float& g : expected) {
    g *= 0.25F;  // a power of two scales without rounding
  }
  EXPECT_EQ(gpt.forward(stream, 0.25F), loss);
  gpt.model.backward(stream, false, {});
  EXPECT_TRUE(same_bits(gpt.gradient_values(), expected));
}

TEST(Gpt, EvaluatesToTheLossOfForward) {
  TinyGpt<CpuDevice> gpt(small(), 2, 33);
  CpuStream stream;
  const float loss = gpt.forward(stream);
  EXPECT_EQ(gpt.evaluate(stream), loss);
}

TEST(Gpt, TakesFewerSequencesAndOneShorter) {
  const GptConfig config = small();
  TinyGpt<CpuDevice> gpt(config, 3, 33);
  CpuStream stream;
  const auto logits = [&](int64_t tokens) {
    const auto view = gpt.model.logits(stream, gpt.tokens.view().subview({0, tokens}));
    EXPECT_EQ(view.size(), tokens * config.padded_vocab());
    return std::vector<float>(view.begin(), view.end());
  };
  const std::vector<float> all = logits(99);
  // A causal model's logits do not depend on what comes later, be it a token or a sequence.
  for (const int64_t tokens : {int64_t{1}, int64_t{20}, int64_t{33}, int64_t{66}}) {
    const std::vector<float> part = logits(tokens);
    for (size_t i = 0; i < part.size(); ++i) {
      ASSERT_NEAR(part[i], all[i], 1e-5) << tokens << " tokens, logit " << i;
    }
  }
  EXPECT_THROW(gpt.model.logits(stream, gpt.tokens.view().subview({0, 34})), InternalError);
  EXPECT_THROW(gpt.model.logits(stream, gpt.tokens.view().subview({0, 0})), InternalError);
}

TEST(Gpt, RefusesAContextPastItsBlock) {
  EXPECT_THROW(TinyGpt<CpuDevice>(small(), 2, 34), InternalError);
}

TEST(Gpt, LeavesGapsAndPaddingOfTheGradientsZero) {
  TinyGpt<CpuDevice> gpt(small(), 2, 33);
  CpuStream stream;
  std::vector<float> gradients = gradients_after(gpt, stream);
  for (const ParamSpec& spec : gpt.table.specs()) {
    std::fill_n(gradients.begin() + spec.range.begin, spec.init_size, 0.0F);
  }
  EXPECT_EQ(std::count(gradients.begin(), gradients.end(), 0.0F), gpt.table.arena_size());
}

TEST(Gpt, StartsAtTheLossOfAUniformGuess) {
  const GptConfig config = {
      .vocab_size = 65, .block_size = 64, .n_layer = 4, .n_head = 4, .n_embd = 128};
  TinyGpt<CpuDevice> gpt(config, 4, 64);
  gpt.set_parameters(initial_parameters(gpt.table, 1337));
  CpuStream stream;
  EXPECT_NEAR(gpt.evaluate(stream), std::log(65.0), 0.02 * std::log(65.0));
}

TEST(Gpt, LearnsOneBatchByHeart) {
  const GptConfig config = {
      .vocab_size = 32, .block_size = 16, .n_layer = 2, .n_head = 2, .n_embd = 32};
  const int64_t sequences = 4;
  TinyGpt<CpuDevice> gpt(config, sequences, 16);
  gpt.set_parameters(initial_parameters(gpt.table, 1));
  std::vector<int32_t> tokens = formula_tokens("tokens", 32, sequences * 16);
  for (int32_t b = 0; b < sequences; ++b) {
    tokens[static_cast<size_t>(b) * 16] = b;  // tells the sequences apart from the first token on
  }
  gpt.set_batch(tokens, formula_tokens("targets", 32, sequences * 16));
  CpuStream stream;
  Optimizer<CpuDevice> optimizer(stream, gpt.table, {.beta2 = 0.99, .weight_decay = 0.0});
  const float start = gpt.evaluate(stream);
  for (int64_t step = 0; step < 200; ++step) {
    gpt.forward(stream);
    gpt.model.backward(stream, false, {});
    AdamWStep scalars = optimizer.scalars(step, 5e-3);
    optimizer.step(stream, {&scalars, 1}, gpt.parameters.view(), gpt.gradients.view());
  }
  EXPECT_GT(start, 3.0F);
  EXPECT_LT(gpt.evaluate(stream), 0.01F);
}

}  // namespace
}  // namespace lockstep
