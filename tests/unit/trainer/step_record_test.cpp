#include "trainer/step_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/evaluation.h"
#include "trainer/window_layout.h"

namespace lockstep {
namespace {

std::vector<float> sum(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] += b[i];
  }
  return a;
}

TEST(StepRecord, OneRanksFlagReachesAll) {
  const StepRecord record(64, 2, 2);
  const auto both = sum(record.start({true, false}), record.start({false, false}));
  EXPECT_TRUE(record.flags(both).stop);
  EXPECT_FALSE(record.flags(both).save_failed);
  const auto all = sum(record.start({true, true}), record.start({true, true}));
  EXPECT_TRUE(record.flags(all).stop);
  EXPECT_TRUE(record.flags(all).save_failed);
}

TEST(StepRecord, LossesAreAveragedInTheirOwnSlots) {
  const StepRecord record(64, 2, 2);
  auto first = record.start({});
  auto second = record.start({});
  first[static_cast<size_t>(record.loss(0).begin - record.range().begin)] = 2.0F;
  second[static_cast<size_t>(record.loss(1).begin - record.range().begin)] = 5.0F;
  EXPECT_EQ(record.mean_loss(sum(first, second)), 3.5);
}

TEST(StepRecord, ALossThatIsNotFiniteShowsOnEveryRank) {
  const StepRecord record(0, 3, 2);
  auto first = record.start({});
  first[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(record.mean_loss(sum(first, record.start({})))));
}

TEST(WindowLayout, PartsAreNeighboursWithoutGapOrOverlap) {
  const WindowLayout layout(128, {4, 2, 3}, 20);
  EXPECT_EQ(layout.gradients, (Range{0, 128}));
  EXPECT_EQ(layout.record.range().begin, 128);
  EXPECT_EQ(layout.evaluation.begin, layout.record.range().end);
  EXPECT_EQ(layout.evaluation.size(), 20);
  EXPECT_EQ(layout.elements(), layout.evaluation.end);
}

TEST(WindowLayout, PartsOfAShardAreOwnedAsTheGradientsAre) {
  constexpr int64_t kS = kSegmentElements;
  const int64_t arena = 9 * kS + 128;
  for (const int ranks : {2, 3}) {
    const BatchPlan batch{4, 2, ranks};
    const WindowLayout whole(arena, batch, 20);
    const WindowLayout layout(arena, batch, 20, true);
    EXPECT_TRUE(layout.sharded());
    EXPECT_FALSE(whole.sharded());
    EXPECT_EQ(layout.summed(), (Range{0, whole.elements()}));
    EXPECT_GE(layout.segment_sums.begin, layout.evaluation.end);
    const SegmentSums sums{arena, ranks};
    EXPECT_EQ(layout.segment_sums.size(), 2 * sums.size());
    EXPECT_EQ(layout.parameters.begin, layout.segment_sums.end);
    EXPECT_EQ(layout.parameters.size(), arena);
    EXPECT_EQ(layout.elements(), layout.parameters.end);
    for (const int64_t begin : {layout.segment_sums.begin, layout.parameters.begin}) {
      EXPECT_EQ(begin % (ranks * kS), 0);
    }
  }
  EXPECT_FALSE(WindowLayout(arena, {4, 2, 1}, 20, true).sharded());
}

TEST(EvaluationPlan, DoesNotDependOnRanksAndIsBounded) {
  GptConfig model;
  model.block_size = 64;
  EXPECT_EQ(plan_evaluation(20, 12, model).batch_size, 12);
  model.block_size = 1024;
  EXPECT_EQ(plan_evaluation(20, 512, model).batch_size, 4);
  model.block_size = 16384;
  EXPECT_EQ(plan_evaluation(20, 512, model).batch_size, 1);
}

}  // namespace
}  // namespace lockstep
