#include "trainer/step_metrics.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

StepMetrics example() {
  StepMetrics metrics;
  metrics.step = 250;
  metrics.max_steps = 2000;
  metrics.ranks = 2;
  metrics.loss = 2.5;
  metrics.norm = 0.75;
  metrics.learning_rate = 9.9e-4;
  metrics.milliseconds = 27.123;
  metrics.tokens_per_second = 28301.4;
  metrics.comm_milliseconds = 3;
  metrics.exposed_milliseconds = 1;
  metrics.seconds_left = 125;
  return metrics;
}

TEST(StepMetrics, Line) {
  EXPECT_EQ(step_line(example()),
            "step   250/2000  12.5% | loss 2.500000 | norm 0.7500 | lr 9.90e-04 | 27.12 ms | "
            "28301 tok/s | comm 3.00 ms = 2.00 hidden + 1.00 exposed | 02:05 left");
}

TEST(StepMetrics, LineOfOneRankHasNoCommunication) {
  StepMetrics metrics = example();
  metrics.ranks = 1;
  EXPECT_EQ(step_line(metrics),
            "step   250/2000  12.5% | loss 2.500000 | norm 0.7500 | lr 9.90e-04 | 27.12 ms | "
            "28301 tok/s | 02:05 left");
}

TEST(StepMetrics, LineWithValidationLossAndNoPaceYet) {
  StepMetrics metrics = example();
  metrics.val_loss = 2.25;
  metrics.seconds_left = -1;
  const std::string line = step_line(metrics);
  EXPECT_NE(line.find("| loss 2.500000 | val 2.250000 | norm"), std::string::npos) << line;
  EXPECT_NE(line.find("| --:-- left"), std::string::npos) << line;
}

TEST(StepMetrics, JsonReadsBackToTheSameBits) {
  StepMetrics metrics = example();
  metrics.loss = 1.0 / 3;
  metrics.val_loss = 0.1;
  EXPECT_EQ(step_json(metrics),
            R"({"step": 250, "loss": 0.3333333333333333, "val_loss": 0.1, "grad_norm": 0.75, )"
            R"("learning_rate": 0.00099, "step_ms": 27.1230, "tokens_per_second": 28301.4, )"
            R"("comm_ms": 3.0000, "comm_exposed_ms": 1.0000})");
}

TEST(StepMetrics, ClockText) {
  EXPECT_EQ(clock_text(5.4), "00:05");
  EXPECT_EQ(clock_text(3723), "1:02:03");
}

}  // namespace
}  // namespace lockstep
