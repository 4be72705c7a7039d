#include "core/base/random.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, MatchesTheKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomNormal, HasTheMomentsOfTheNormalDistribution) {
  constexpr int kCount = 200000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = random_normal(1, 2, static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0, 0.01);
}

}  // namespace
}  // namespace lockstep
