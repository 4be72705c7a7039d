#include "core/model/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lockstep {
namespace {

const std::vector<float> kLogits = {0.0F, 2.0F, 1.0F, 2.0F, -3.0F};

std::vector<double> frequencies(const SamplingOptions& options, uint64_t draws) {
  std::vector<double> counts(kLogits.size());
  for (uint64_t i = 0; i < draws; ++i) {
    counts[static_cast<size_t>(sample_token(kLogits, options, i))] += 1.0;
  }
  for (double& count : counts) {
    count /= static_cast<double>(draws);
  }
  return counts;
}

TEST(Sampling, FollowsTheSoftmaxAtItsTemperature) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    std::vector<double> expected;
    double total = 0;
    for (const float logit : kLogits) {
      expected.push_back(std::exp(static_cast<double>(logit) / temperature));
      total += expected.back();
    }
    const auto seen = frequencies({.temperature = temperature}, 20000);
    for (size_t i = 0; i < kLogits.size(); ++i) {
      // Five standard deviations of a count of 20,000.
      EXPECT_NEAR(seen[i], expected[i] / total, 5 * 0.5 / std::sqrt(20000.0)) << i;
    }
  }
}

TEST(Sampling, TopKLeavesTheRestOut) {
  const auto seen = frequencies({.temperature = 1.0, .top_k = 3}, 5000);
  EXPECT_EQ(seen[0], 0);
  EXPECT_EQ(seen[4], 0);
  EXPECT_GT(seen[2], 0.1);
  EXPECT_EQ(frequencies({.temperature = 1.0, .top_k = 1}, 100)[1], 1);
}

TEST(Sampling, TemperatureZeroTakesTheMostLikelyAndTheLowerIdOfEquals) {
  EXPECT_EQ(frequencies({.temperature = 0}, 100)[1], 1);
}

TEST(Sampling, IsAFunctionOfSeedAndIndex) {
  std::vector<int32_t> one;
  std::vector<int32_t> again;
  std::vector<int32_t> other;
  for (uint64_t i = 0; i < 64; ++i) {
    one.push_back(sample_token(kLogits, {.seed = 1}, i));
    again.push_back(sample_token(kLogits, {.seed = 1}, i));
    other.push_back(sample_token(kLogits, {.seed = 2}, i));
  }
  EXPECT_EQ(one, again);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace lockstep
