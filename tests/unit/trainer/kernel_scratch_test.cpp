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

TEST(KernelScratch, MakesThePlanWhatAStepTookOnAnH200) {
  for (const MeasuredRun& run : kMeasuredRuns) {
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
