#include "trainer/progress.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Progress, KnowsTheFirstStepsPaceButNotTheTimeLeft) {
  Progress progress(0, 10, 100);
  EXPECT_EQ(progress.tokens_per_second(), 0);
  progress.step_done(4.0, 9.0);
  EXPECT_NEAR(progress.tokens_per_second(), 25, 1e-9);
  EXPECT_LT(progress.seconds_left(), 0);
}

TEST(Progress, SteadyStepsGiveTheirRateFromTheSecondOn) {
  Progress progress(0, 10, 100);
  progress.step_done(9.0, 9.0);
  progress.step_done(0.5, 9.5);
  EXPECT_NEAR(progress.tokens_per_second(), 200, 1e-9);
  EXPECT_NEAR(progress.seconds_left(), 8 * 0.5, 1e-9);
  progress.step_done(0.5, 10.0);
  EXPECT_NEAR(progress.tokens_per_second(), 200, 1e-9);
}

TEST(Progress, TimeLeftCountsWhatStepsDoNot) {
  Progress progress(100, 200, 100);
  progress.step_done(1.0, 1.0);
  progress.step_done(1.0, 5.0);  // three seconds of evaluation
  EXPECT_NEAR(progress.seconds_left(), 98 * 4.0, 1e-9);
}

TEST(Progress, AChangeOfPaceIsFollowed) {
  Progress progress(0, 1000, 100);
  double elapsed = 0;
  for (int i = 0; i < 100; ++i) {
    progress.step_done(1.0, ++elapsed);
  }
  for (int i = 0; i < 100; ++i) {
    progress.step_done(0.1, elapsed += 0.1);
  }
  EXPECT_NEAR(progress.tokens_per_second(), 1000, 60);
}

}  // namespace
}  // namespace lockstep
