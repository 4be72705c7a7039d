#include "kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

struct Case {
  int64_t rows;
  int64_t vocabulary;
  int64_t padded_vocabulary;
};
constexpr Case kCases[] = {{1, 1, 1},     {3, 2, 16},      {100, 65, 80},
                           {384, 65, 65}, {7, 1000, 1001}, {5, 50257, 50304}};
constexpr float kScale = 1.0F / 384;

// Logits of N(0, 3²); the padding holds what must not be read: infinity.
std::vector<float> logits_of(const Case& c) {
  std::vector<float> logits = normal_values(c.rows * c.padded_vocabulary, 1, 3.0);
  for (int64_t i = 0; i < c.rows * c.padded_vocabulary; ++i) {
    if (i % c.padded_vocabulary >= c.vocabulary) {
      logits[static_cast<size_t>(i)] = std::numeric_limits<float>::infinity();
    }
  }
  return logits;
}

std::vector<int32_t> targets_of(const Case& c) {
  std::vector<int32_t> targets;
  for (int64_t row = 0; row < c.rows; ++row) {
    const uint64_t bits = random_bits(2, 0, static_cast<uint64_t>(row));
    targets.push_back(static_cast<int32_t>(bits % static_cast<uint64_t>(c.vocabulary)));
  }
  targets.back() = static_cast<int32_t>(c.vocabulary - 1);
  return targets;
}

struct Result {
  std::vector<float> losses, logits;
};

Result run(CpuStream& stream, const Case& c, const std::vector<float>& start,
           const std::vector<int32_t>& targets, bool gradient) {
  Output losses(c.rows);
  Output logits(start);
  cross_entropy(stream, {.rows = c.rows,
                         .vocabulary = c.vocabulary,
                         .padded_vocabulary = c.padded_vocabulary,
                         .gradient = gradient,
                         .gradient_scale = kScale,
                         .losses = losses.view(),
                         .logits = logits.view(),
                         .targets = view_of(targets)});
  return {losses.values(), logits.values()};
}

TEST(CrossEntropy, MatchesTheReference) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.rows << " rows of " << c.vocabulary);
    const auto logits = logits_of(c);
    const auto targets = targets_of(c);
    const auto losses = at_any_thread_count(
        "losses", [&](CpuStream& stream) { return run(stream, c, logits, targets, true).losses; });
    const auto dlogits = at_any_thread_count(
        "dlogits", [&](CpuStream& stream) { return run(stream, c, logits, targets, true).logits; });
    const auto plain = naive::cross_entropy(c.vocabulary, kScale, logits, targets);
    const auto reference =
        naive::cross_entropy(c.vocabulary, static_cast<double>(kScale), to_double(logits), targets);
    // A loss is a difference of numbers as large as the logits, whose rounding it inherits.
    EXPECT_LE(relative_error(losses, reference.losses),
              2 * relative_error(plain.losses, reference.losses) + 2e-7);
    expect_close("dlogits", dlogits, plain.dlogits, reference.dlogits);
    for (int64_t i = 0; i < c.rows * c.padded_vocabulary; ++i) {
      if (i % c.padded_vocabulary >= c.vocabulary) {
        ASSERT_EQ(dlogits[static_cast<size_t>(i)], 0.0F);
      }
    }
  }
}

TEST(CrossEntropy, WithoutGradientLeavesTheLogits) {
  CpuStream stream;
  for (const Case& c : kCases) {
    const auto logits = logits_of(c);
    const auto targets = targets_of(c);
    const Result with = run(stream, c, logits, targets, true);
    const Result without = run(stream, c, logits, targets, false);
    expect_same_bits("losses", with.losses, without.losses);
    expect_same_bits("logits", without.logits, logits);
  }
}

TEST(CrossEntropy, SurvivesHugeLogits) {
  CpuStream stream;
  const Case c{3, 65, 80};
  std::vector<float> logits = normal_values(c.rows * c.padded_vocabulary, 1, 3000.0);
  const auto targets = targets_of(c);
  const Result result = run(stream, c, logits, targets, true);
  const auto reference =
      naive::cross_entropy(c.vocabulary, static_cast<double>(kScale), to_double(logits), targets);
  EXPECT_LE(relative_error(result.losses, reference.losses), 1e-6);
  EXPECT_LE(relative_error(result.logits, reference.dlogits), 1e-6);
}

// The trainer stops at a loss that is not finite: it must become one.
TEST(CrossEntropy, ShowsANanAmongTheLogits) {
  CpuStream stream;
  for (const int64_t vocabulary : {int64_t{65}, int64_t{1000}}) {
    const Case c{1, vocabulary, vocabulary};
    for (const int64_t place : {int64_t{0}, int64_t{17}, vocabulary - 1}) {
      std::vector<float> logits = normal_values(vocabulary, 1);
      logits[static_cast<size_t>(place)] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(run(stream, c, logits, {1}, true).losses[0])) << place;
    }
  }
}

}  // namespace
}  // namespace lockstep
