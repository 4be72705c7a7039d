#include "trainer/batch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

std::string refusal(int64_t batch, int64_t global, int64_t accumulation, int world) {
  try {
    plan_batch(batch, global, accumulation, world);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(BatchPlan, IsTwelveSequencesOverAllRanksByDefault) {
  EXPECT_EQ(plan_batch(0, 0, 0, 1), (BatchPlan{12, 1, 1}));
  EXPECT_EQ(plan_batch(0, 0, 0, 3), (BatchPlan{4, 1, 3}));
}

TEST(BatchPlan, GlobalBatchIsDividedOverRanksAndAccumulation) {
  EXPECT_EQ(plan_batch(0, 24, 0, 2), (BatchPlan{12, 1, 2}));
  EXPECT_EQ(plan_batch(0, 24, 3, 2), (BatchPlan{4, 3, 2}));
}

TEST(BatchPlan, AccumulationFollowsFromBothSizes) {
  EXPECT_EQ(plan_batch(4, 24, 0, 2), (BatchPlan{4, 3, 2}));
  EXPECT_EQ(plan_batch(4, 24, 3, 2), (BatchPlan{4, 3, 2}));
}

TEST(BatchPlan, BatchSizeAloneGrowsTheGlobalBatchWithTheRanks) {
  EXPECT_EQ(plan_batch(4, 0, 0, 3).global_batch_size(), 12);
  EXPECT_EQ(plan_batch(4, 0, 5, 3).global_batch_size(), 60);
}

TEST(BatchPlan, RefusesMoreRanksThanSequences) {
  EXPECT_THAT(refusal(0, 2, 0, 3), HasSubstr("3 ranks cannot share a global batch of 2"));
  EXPECT_THAT(refusal(0, 0, 0, 13), HasSubstr("at most 12 ranks"));
}

TEST(BatchPlan, RefusesUnevenShareWithTheNearestValues) {
  EXPECT_THAT(refusal(0, 10, 0, 4), HasSubstr("is 8 or 12"));
  EXPECT_THAT(refusal(0, 10, 2, 3), HasSubstr("3 ranks x 2 accumulation steps"));
  EXPECT_THAT(refusal(8, 12, 0, 1), HasSubstr("is 8 or 16"));
  EXPECT_THAT(refusal(8, 12, 0, 2), HasSubstr("is 16"));
}

TEST(BatchPlan, RefusesContradiction) {
  EXPECT_THAT(refusal(4, 12, 2, 2), HasSubstr("are 16 sequences, not --global-batch-size 12"));
}

TEST(BatchPlan, RefusesAProductThatIsTooLarge) {
  const int64_t most = kMostSequences;
  EXPECT_EQ(plan_batch(most, 0, 0, 1).global_batch_size(), most);
  EXPECT_THAT(refusal(most, 0, 0, 2), HasSubstr("more than 1000000000 sequences a step"));
  EXPECT_THAT(refusal(most, 0, most, 100), HasSubstr("more than 1000000000 sequences a step"));
  EXPECT_THAT(refusal(most, most, most, 100), HasSubstr("more than 1000000000 sequences a step"));
  EXPECT_THAT(refusal(most, most, 0, 100), HasSubstr("the nearest"));
  EXPECT_THAT(refusal(0, most, most, 100), HasSubstr("the nearest"));
}

}  // namespace
}  // namespace lockstep
