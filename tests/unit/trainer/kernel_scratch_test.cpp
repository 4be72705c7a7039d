#include "trainer/kernel_scratch.h"

#include <gtest/gtest.h>

#include "core/device/scratch_growth.h"
#include "measured_runs.h"
#include "trainer/memory_plan.h"

namespace lockstep {
namespace {

TEST(KernelScratch, GrowsToTwiceAsMuchOrWhatIsWanted) {
  EXPECT_EQ(grown_scratch(1, 0), 1);
  EXPECT_EQ(grown_scratch(1000, 0), 1024);
  EXPECT_EQ(grown_scratch(1100, 0), 1152);
  EXPECT_EQ(grown_scratch(1100, 1000), 2000);
}

struct Measured {
  GptConfig model;
  int64_t batch;
  Precision precision;
  double mib;
};

// docs/results/gpu-2026-11-30/steps-wgmma-attention.txt
TEST(KernelScratch, MakesThePlanWhatAStepTookOnAnH200) {
  for (const Measured& run : {Measured{char_gpt(256), 16, Precision::kTf32, 758},
                              Measured{char_gpt(256), 64, Precision::kTf32, 2456},
                              Measured{char_gpt(256), 16, Precision::kFp32, 760},
                              Measured{char_gpt(256), 64, Precision::kFp32, 2464},
                              Measured{char_gpt(1024), 16, Precision::kTf32, 2556},
                              Measured{char_gpt(2048), 16, Precision::kTf32, 4918},
                              Measured{kGpt2, 32, Precision::kTf32, 26028}}) {
    const RunShape shape = {.model = run.model, .batch = {.batch_size = run.batch}};
    const int64_t scratch = kernel_scratch(
        {.model = run.model, .batch = run.batch, .precision = run.precision}, h200());
    const double mib = static_cast<double>(plan_memory(shape).total() + scratch) / (1 << 20);
    // The rest are the streams' small ops and what the driver rounds up.
    EXPECT_LE(mib, run.mib) << run.batch << " x " << run.model.block_size;
    EXPECT_GE(mib, run.mib - 16) << run.batch << " x " << run.model.block_size;
  }
}

}  // namespace
}  // namespace lockstep
