#include "trainer/bucket_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/error.h"

namespace lockstep {
namespace {

/// The buckets of one pass over ranges that end at the given elements, downward to 0.
std::vector<Range> buckets(BucketPlan& plan, int64_t end, const std::vector<int64_t>& begins) {
  std::vector<Range> result;
  for (const int64_t begin : begins) {
    if (const auto bucket = plan.add({begin, end})) {
      result.push_back(*bucket);
    }
    end = begin;
  }
  if (const auto rest = plan.flush()) {
    result.push_back(*rest);
  }
  return result;
}

TEST(BucketPlan, JoinsRangesUntilABucketIsFull) {
  BucketPlan plan(100, 30);
  EXPECT_EQ(buckets(plan, 100, {90, 75, 70, 20, 10, 0}),
            (std::vector<Range>{{70, 100}, {20, 70}, {0, 20}}));
}

TEST(BucketPlan, LastBucketMayBeFullWithoutARest) {
  BucketPlan plan(100, 50);
  EXPECT_EQ(buckets(plan, 100, {50, 0}), (std::vector<Range>{{50, 100}, {0, 50}}));
}

TEST(BucketPlan, OneBucketWhenNothingReachesTheSize) {
  BucketPlan plan(100, 101);
  EXPECT_EQ(buckets(plan, 100, {60, 30, 0}), (std::vector<Range>{{0, 100}}));
}

TEST(BucketPlan, EveryPassIsAlike) {
  BucketPlan plan(100, 30);
  const auto first = buckets(plan, 100, {80, 60, 40, 0});
  EXPECT_EQ(buckets(plan, 100, {80, 60, 40, 0}), first);
}

TEST(BucketPlan, RefusesAGapAnOverlapAndAMissingEnd) {
  BucketPlan gap(100, 30);
  gap.add({80, 100});
  EXPECT_THROW(gap.add({40, 70}), InternalError);
  BucketPlan overlap(100, 30);
  overlap.add({80, 100});
  EXPECT_THROW(overlap.add({40, 90}), InternalError);
  BucketPlan missing(100, 30);
  missing.add({20, 100});
  EXPECT_THROW(missing.flush(), InternalError);
}

}  // namespace
}  // namespace lockstep
