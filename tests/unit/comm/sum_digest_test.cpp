#include "comm/cuda/sum_digest.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

TEST(SumDigest, TellsCollectivesRangesAndBucketsApart) {
  std::set<uint32_t> digests;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    for (const Range range : {Range{0, 100}, Range{0, 101}, Range{1, 100}}) {
      for (const int bucket : {0, 1}) {
        digests.insert(sum_digest(range, bucket, kind));
      }
    }
  }
  EXPECT_EQ(digests.size(), 18U);
  EXPECT_EQ(sum_digest({0, 100}, 1), sum_digest({0, 100}, 1, CollectiveKind::kAllReduce));
}

}  // namespace
}  // namespace lockstep
