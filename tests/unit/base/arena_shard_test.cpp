#include "core/base/arena_shard.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

constexpr int64_t kS = kSegmentElements;

TEST(ArenaShard, ShardsDivideAnArena) {
  for (const int64_t ranks : {1, 2, 3, 5}) {
    for (const int64_t elements :
         {int64_t{0}, int64_t{1}, kS - 1, kS, kS + 1, 2 * kS, 5 * kS + 7, 6 * kS, 13 * kS - 1}) {
      SCOPED_TRACE(testing::Message() << elements << " elements, " << ranks << " ranks");
      std::vector<int> owners(static_cast<size_t>(elements), 0);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const ArenaShard shard{rank, ranks};
        int64_t next = 0;
        shard.for_each_segment(elements, [&](Range at, Range segment) {
          EXPECT_EQ(segment.begin, next);
          EXPECT_EQ(segment.size(), at.size());
          next = segment.end;
          for (int64_t i = 0; i < at.size(); ++i) {
            ++owners[static_cast<size_t>(at.begin + i)];
            EXPECT_EQ(shard.position(segment.begin + i), at.begin + i);
            EXPECT_TRUE(shard.owns(at.begin + i));
            EXPECT_EQ(at.begin / kS % ranks, rank);
          }
        });
        EXPECT_EQ(shard.size(elements), next);
        EXPECT_LE(shard.size(elements), (ArenaShard{0, ranks}.size(elements)));
      }
      EXPECT_EQ(owners, std::vector<int>(owners.size(), 1));
    }
  }
}

}  // namespace
}  // namespace lockstep
