#include "comm/sum_time.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

class SumTimes : public testing::Test {
 protected:
  /// What the GPU shows `later` after the last look.
  Clock::duration look(milliseconds later, int bucket, uint64_t busy_ns) {
    now_ += later;
    return sum_.look(bucket, busy_ns, now_);
  }

 private:
  Clock::time_point now_{};
  SumTime sum_{now_};
};

TEST_F(SumTimes, GrowsWhileTheGpuShowsTheSameSum) {
  EXPECT_EQ(look(milliseconds(2), 3, 70), milliseconds(0));
  EXPECT_EQ(look(milliseconds(2), 3, 70), milliseconds(2));
  EXPECT_EQ(look(milliseconds(5), 3, 70), milliseconds(7));
}

TEST_F(SumTimes, BeginsAnewWithEverySum) {
  look(milliseconds(2), 3, 70);
  look(milliseconds(2), 3, 70);
  EXPECT_EQ(look(milliseconds(2), 2, 70), milliseconds(0)) << "another bucket";
  EXPECT_EQ(look(milliseconds(2), 2, 70), milliseconds(2));
  EXPECT_EQ(look(milliseconds(2), 2, 90), milliseconds(0)) << "the same bucket in the next step";
}

TEST_F(SumTimes, IsNothingBetweenSums) {
  look(milliseconds(2), -1, 70);
  EXPECT_EQ(look(milliseconds(200), -1, 70), milliseconds(0));
  EXPECT_EQ(look(milliseconds(200), 0, 70), milliseconds(0));
}

TEST_F(SumTimes, DoesNotCountWhatStoppedTheProcess) {
  look(milliseconds(2), 3, 70);
  EXPECT_LE(look(milliseconds(600000), 3, 70), milliseconds(1000));
}

}  // namespace
}  // namespace lockstep
