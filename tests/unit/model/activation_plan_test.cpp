#include "core/model/activation_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"

namespace lockstep {
namespace {

using Purpose = ActivationPlan::Purpose;

GptConfig small() {
  return {.vocab_size = 65, .block_size = 4096, .n_layer = 3, .n_head = 4, .n_embd = 64};
}

// But for the norms' output.
std::vector<Range> ranges_of(const LayerActivations& layer) {
  return {layer.input,           layer.qkv,       layer.lse,
          layer.attention_out,   layer.middle,    layer.ln_1.mean,
          layer.ln_1.rstd,       layer.ln_2.mean, layer.ln_2.rstd,
          layer.gelu_derivative, layer.gelu_out};
}

void expect_disjoint(std::vector<Range> ranges, int64_t size) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  int64_t end = 0;
  for (const Range& range : ranges) {
    EXPECT_FALSE(range.empty());
    EXPECT_GE(range.begin, end);
    EXPECT_EQ(range.begin % 64, 0);
    end = range.end;
  }
  EXPECT_LE(end, size);
}

TEST(ActivationPlan, KeepsEveryActivationInAPlaceOfItsOwn) {
  const ActivationPlan plan(small(), 3, 37, Purpose::kTraining);
  std::vector<Range> ranges = {plan.head().input,
                               plan.head().logits,
                               plan.head().losses,
                               plan.head().ln_f.mean,
                               plan.head().ln_f.rstd,
                               plan.head().ln_f.out,
                               plan.layer(0).ln_1.out,
                               plan.scratch().residual_gradient,
                               plan.scratch().branch_gradient,
                               plan.scratch().wide_gradient,
                               plan.scratch().attention_delta};
  for (int64_t layer = 0; layer < 3; ++layer) {
    const std::vector<Range> more = ranges_of(plan.layer(layer));
    ranges.insert(ranges.end(), more.begin(), more.end());
    EXPECT_EQ(plan.layer(layer).ln_1.out, plan.layer(0).ln_1.out);
    EXPECT_EQ(plan.layer(layer).ln_2.out, plan.layer(0).ln_1.out);
  }
  expect_disjoint(ranges, plan.size());
}

TEST(ActivationPlan, LaysTheHeadsGradientOverTheBranchesOnly) {
  GptConfig config = small();
  config.vocab_size = 50257;  // larger than everything that it lies over
  const ActivationPlan plan(config, 1, 8, Purpose::kTraining);
  expect_disjoint({plan.head().logits, plan.head().ln_f.out, plan.scratch().residual_gradient,
                   plan.scratch().head_gradient},
                  plan.size());
  EXPECT_EQ(plan.scratch().head_gradient.size(), config.padded_vocab() * config.n_embd);
}

TEST(ActivationPlan, IsLinearInTheContext) {
  const auto bytes = [](int64_t time) {
    return ActivationPlan(small(), 2, time, Purpose::kTraining).size() * 4;
  };
  EXPECT_EQ(bytes(3072) - bytes(2048), bytes(2048) - bytes(1024));
  EXPECT_EQ(bytes(4096) - bytes(2048), 2 * (bytes(2048) - bytes(1024)));
}

// 14 C + H + 4 floats a token and layer, and C for the output of all their norms; the head 2 C +
// padded_vocab + 3; the scratch 6 C + H.
TEST(ActivationPlan, CountsBytesByClass) {
  const ActivationPlan plan(small(), 2, 64, Purpose::kTraining);
  const int64_t tokens = 128;
  EXPECT_EQ(plan.layer_bytes(), tokens * (3 * (14 * 64 + 4 + 4) + 64) * 4);
  EXPECT_EQ(plan.head_bytes(), tokens * (2 * 64 + 80 + 3) * 4);
  EXPECT_EQ(plan.scratch_bytes(), tokens * (6 * 64 + 4) * 4);
  EXPECT_EQ(plan.layer_bytes() + plan.head_bytes() + plan.scratch_bytes(), plan.size() * 4);
}

TEST(ActivationPlan, SharesOneLayerForInference) {
  const ActivationPlan plan(small(), 2, 64, Purpose::kInference);
  const ActivationPlan training(small(), 2, 64, Purpose::kTraining);
  EXPECT_EQ(plan.layer(2).qkv, plan.layer(0).qkv);
  EXPECT_TRUE(plan.layer(0).gelu_derivative.empty());
  const int64_t gelu_derivative = 4 * training.layer(0).gelu_derivative.size();
  const int64_t norm_out = 4 * plan.layer(0).ln_1.out.size();
  EXPECT_EQ(plan.layer_bytes() - norm_out,
            (training.layer_bytes() - norm_out) / 3 - gelu_derivative);
  EXPECT_EQ(plan.scratch_bytes(), 0);
}

TEST(ActivationPlan, RefusesMoreTokensThanItsBytesCanCount) {
  const GptConfig largest = {.vocab_size = (int64_t{1} << 31) - 16,
                             .block_size = GptConfig::kMostContext,
                             .n_layer = GptConfig::kMostLayers,
                             .n_head = GptConfig::kMostHeads,
                             .n_embd = GptConfig::kMostChannels};
  const ActivationPlan plan(largest, 8, largest.block_size, Purpose::kTraining);
  EXPECT_GT(plan.size(), int64_t{1} << 59);
  EXPECT_EQ(plan.layer_bytes() + plan.head_bytes() + plan.scratch_bytes(), plan.size() * 4);
  EXPECT_THROW(ActivationPlan(largest, 9, largest.block_size, Purpose::kTraining), UsageError);
  EXPECT_THROW(ActivationPlan(largest, int64_t{1} << 60, 32, Purpose::kTraining), UsageError);
}

}  // namespace
}  // namespace lockstep
