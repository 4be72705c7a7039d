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
  const int count = 200000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < count; ++i) {
    const double x = random_normal(1, 2, static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / count, 0.0, 0.01);
  EXPECT_NEAR(squares / count, 1.0, 0.01);
}

TEST(RandomNormals, AreFourIndependentDrawsOfTheNormalDistribution) {
  const int count = 100000;
  std::array<std::array<double, 4>, 4> products{};
  std::array<double, 4> sums{};
  for (int i = 0; i < count; ++i) {
    const auto x = random_normals(1, 2, static_cast<uint64_t>(i));
    for (size_t a = 0; a < 4; ++a) {
      sums[a] += x[a];
      for (size_t b = 0; b < 4; ++b) {
        products[a][b] += x[a] * x[b];
      }
    }
  }
  for (size_t a = 0; a < 4; ++a) {
    EXPECT_NEAR(sums[a] / count, 0.0, 0.015);
    for (size_t b = 0; b < 4; ++b) {
      EXPECT_NEAR(products[a][b] / count, a == b ? 1.0 : 0.0, 0.02) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace lockstep
