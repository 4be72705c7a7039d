#include "trainer/step_time.h"

#include <gtest/gtest.h>

#include <string>

#include "measured_runs.h"

namespace lockstep {
namespace {

TEST(StepTime, IsWithinATwentiethOfWhatWasMeasuredOnAnH200) {
  for (const MeasuredRun& run : kMeasuredRuns) {
    const auto time =
        predict_step({.model = run.model, .batch = run.batch, .precision = run.precision}, h200());
    ASSERT_TRUE(time);
    EXPECT_NEAR(time->total(), run.milliseconds, run.milliseconds / 20)
        << run.batch << " x " << run.model.block_size;
  }
}

TEST(StepTime, CountsForwardAndBackwardOfEveryMicroStepAndOneUpdate) {
  StepWork work = {.model = char_gpt(256), .batch = 16, .precision = Precision::kTf32};
  const StepTime one = *predict_step(work, h200());
  work.micro_steps = 3;
  const StepTime three = *predict_step(work, h200());
  EXPECT_DOUBLE_EQ(three.products, 3 * one.products);
  EXPECT_DOUBLE_EQ(three.attention, 3 * one.attention);
  EXPECT_DOUBLE_EQ(three.rows, 3 * one.rows);
  EXPECT_DOUBLE_EQ(three.optimizer, one.optimizer);
}

TEST(StepTime, SaysWhenItKnowsNothingOfAGpu) {
  CudaFacts other = h200();
  other.compute_capability = 86;
  other.name = "another";
  EXPECT_FALSE(predict_step({.model = char_gpt(256)}, other));
  EXPECT_EQ(step_time_report({.model = char_gpt(256)}, other),
            "a step's time is not predicted for another");
  EXPECT_EQ(step_time_report({.model = char_gpt(256)}, h200()).find("a step is predicted to take"),
            std::string::size_type{0});
}

}  // namespace
}  // namespace lockstep
