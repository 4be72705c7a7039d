// Single-precision factors as pairs of TF32 values: what is lost, and that it has no bias.
#include "kernels/layout/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/random.h"

namespace lockstep::layout {
namespace {

constexpr uint64_t kSamples = 200000;

float sample(uint64_t stream, uint64_t i) {
  return static_cast<float>(random_normal(3, stream, i));
}

double value(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// As tensor cores read a factor.
double multiplied(uint32_t bits) {
  return value(bits & kTf32Mask);
}

struct Parts {
  double upper;
  double rest;
};
// The register operand's parts, and those of the one in shared memory.
Parts parts_of_a(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t upper = nearest_tf32(bits);
  return {multiplied(upper), multiplied(rest_of(bits, upper))};
}
Parts parts_of_b(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return {multiplied(bits), multiplied(truncation_rest(bits))};
}

TEST(Split, PartsAddUpToTheFactor) {
  for (uint64_t i = 0; i < kSamples; ++i) {
    const float x = sample(0, i);
    const Parts a = parts_of_a(x);
    const Parts b = parts_of_b(x);
    const double unit = std::ldexp(1.0, std::ilogb(x) - 23);
    EXPECT_LE(std::abs(a.upper + a.rest - x), unit);
    EXPECT_LE(std::abs(b.upper + b.rest - x), 2 * unit);
  }
}

TEST(Split, ThreeProductsErrByLittleAndOnNeitherSide) {
  double error = 0;
  double magnitude = 0;
  double most_left_out = 0;
  for (uint64_t i = 0; i < kSamples; ++i) {
    const float x = std::abs(sample(0, i));
    const float y = std::abs(sample(1, i));
    const Parts a = parts_of_a(x);
    const Parts b = parts_of_b(y);
    const double exact = static_cast<double>(x) * y;
    const double product = a.upper * b.upper + a.upper * b.rest + a.rest * b.upper;
    EXPECT_LE(std::abs(product - exact), 0x1p-20 * exact);
    const Parts c = parts_of_a(y);
    const double of_nearest = a.upper * c.upper + a.upper * c.rest + a.rest * c.upper;
    EXPECT_LE(std::abs(of_nearest - exact), kMostLeftOut * exact);
    most_left_out = std::max(most_left_out, std::abs(of_nearest - exact) / exact);
    error += product - exact;
    magnitude += exact;
  }
  EXPECT_LE(std::abs(error), 0x1p-24 * magnitude);
  EXPECT_GE(most_left_out, kMostLeftOut / 2) << "the bound could be tighter";
}

TEST(Split, WhatIsNotFiniteStaysSoInOnePartAtLeast) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const uint32_t bits : {std::bit_cast<uint32_t>(infinity), std::bit_cast<uint32_t>(-infinity),
                              0x7FFFFFFFU, 0xFFFFFFFFU, 0x7FC00000U, 0xFFC00000U, 0x7F800001U}) {
    const Parts a = parts_of_a(std::bit_cast<float>(bits));
    const Parts b = parts_of_b(std::bit_cast<float>(bits));
    EXPECT_FALSE(std::isfinite(a.upper) && std::isfinite(a.rest)) << std::hex << bits;
    EXPECT_FALSE(std::isfinite(b.upper) && std::isfinite(b.rest)) << std::hex << bits;
  }
}

// Every pattern of the upper bits, with those that are dropped at the turns of the rounding.
TEST(Split, RaisedFloatsAreTruncatedToTheNearest) {
  for (uint64_t upper = 0; upper < uint64_t{1} << 32; upper += 0x2000) {
    for (const uint32_t dropped : {0x0U, 0x1U, 0xFFFU, 0x1000U, 0x1001U, 0x1FFFU}) {
      const uint32_t bits = static_cast<uint32_t>(upper) | dropped;
      const uint32_t raised = raised_for_truncation(bits);
      const uint32_t kept = raised & kTf32Mask;
      if (std::isnan(std::bit_cast<float>(bits))) {
        const bool quiet = (bits & 0x00400000U) != 0;
        ASSERT_TRUE(std::isnan(std::bit_cast<float>(raised))) << std::hex << bits;
        ASSERT_TRUE(quiet ? std::isnan(value(kept)) : !std::isfinite(value(kept)))
            << std::hex << bits;
      } else {
        ASSERT_EQ(kept, nearest_tf32(bits)) << std::hex << bits;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::layout
