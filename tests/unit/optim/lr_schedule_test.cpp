#include "core/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

// nanoGPT's get_lr, written from its definition.
double nanogpt_rate(double learning_rate, double min_lr, int warmup, int decay, int it) {
  if (it < warmup) {
    return learning_rate * (it + 1) / (warmup + 1);
  }
  if (it > decay) {
    return min_lr;
  }
  const double ratio = static_cast<double>(it - warmup) / (decay - warmup);
  return min_lr + 0.5 * (1.0 + std::cos(M_PI * ratio)) * (learning_rate - min_lr);
}

TEST(LrSchedule, EqualsNanoGptAtEveryStep) {
  const LrSchedule schedule = {
      .learning_rate = 1e-3, .min_lr = 1e-4, .warmup_iters = 100, .lr_decay_iters = 2000};
  for (int step = 0; step < 2100; ++step) {
    EXPECT_NEAR(schedule.at(step), nanogpt_rate(1e-3, 1e-4, 100, 2000, step), 1e-16) << step;
  }
}

TEST(LrSchedule, HasTheCornersOfItsThreeParts) {
  const LrSchedule schedule = {
      .learning_rate = 1.0, .min_lr = 0.25, .warmup_iters = 3, .lr_decay_iters = 11};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.25);  // never zero: the first step learns too
  EXPECT_DOUBLE_EQ(schedule.at(2), 0.75);
  EXPECT_DOUBLE_EQ(schedule.at(3), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(7), 0.625);  // half way down
  EXPECT_DOUBLE_EQ(schedule.at(11), 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(1000000), 0.25);
}

TEST(LrSchedule, NeedsNeitherWarmUpNorDecay) {
  const LrSchedule no_warmup = {
      .learning_rate = 1.0, .min_lr = 0.0, .warmup_iters = 0, .lr_decay_iters = 10};
  EXPECT_DOUBLE_EQ(no_warmup.at(0), 1.0);
  const LrSchedule no_cosine = {
      .learning_rate = 1.0, .min_lr = 0.5, .warmup_iters = 10, .lr_decay_iters = 10};
  EXPECT_DOUBLE_EQ(no_cosine.at(10), 0.5);
}

}  // namespace
}  // namespace lockstep
