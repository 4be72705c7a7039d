#include "comm/cpu_threads.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(CpuThreads, RanksThatShareCpusDivideThem) {
  const std::vector<CpuSet> ranks(3, CpuSet{"a", "11111111"});
  EXPECT_EQ(threads_of(ranks, 0), 2);
  EXPECT_EQ(threads_of(ranks, 2), 2);
}

TEST(CpuThreads, BoundRanksUseTheirOwn) {
  const std::vector<CpuSet> ranks = {{"a", "11110000"}, {"a", "00001111"}};
  EXPECT_EQ(threads_of(ranks, 0), 4);
  EXPECT_EQ(threads_of(ranks, 1), 4);
}

TEST(CpuThreads, AnotherHostsCpusAreNotShared) {
  const std::vector<CpuSet> ranks = {{"a", "11"}, {"b", "11"}};
  EXPECT_EQ(threads_of(ranks, 0), 2);
}

TEST(CpuThreads, AtLeastOneHoweverManyRanks) {
  const std::vector<CpuSet> ranks(5, CpuSet{"a", "11"});
  EXPECT_EQ(threads_of(ranks, 4), 1);
  EXPECT_EQ(threads_of({CpuSet{"a", ""}}, 0), 1);
}

}  // namespace
}  // namespace lockstep
