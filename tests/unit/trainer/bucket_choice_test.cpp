#include "trainer/bucket_choice.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

constexpr int64_t kMebi = (1 << 20) / sizeof(float);

TEST(BucketChoice, FollowsTheProductOfLatencyAndRate) {
  EXPECT_EQ(choose_bucket_elements({5e-6, 320e9}, 100'000'000), 1'600'000);
  EXPECT_EQ(choose_bucket_elements({100e-6, 3e9}, 100'000'000), 300'000);
}

TEST(BucketChoice, StaysBetweenOneMebibyteAndAQuarterOfTheWindow) {
  EXPECT_EQ(choose_bucket_elements({1e-6, 1e9}, 100'000'000), kMebi);
  EXPECT_EQ(choose_bucket_elements({1e-3, 100e9}, 10'000'000), 2'500'000);
  EXPECT_EQ(choose_bucket_elements({1e-3, 100e9}, 1000), kMebi);
}

}  // namespace
}  // namespace lockstep
