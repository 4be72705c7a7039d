#include "trainer/step_marks.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

/// A device whose time the test sets; counts the marks that it is given.
struct ToyDevice {
  struct Stream {
    double now = 0;
    int marks = 0;
  };
  struct Event {
    double time = 0;
    void mark(Stream& stream) {
      time = stream.now;
      ++stream.marks;
    }
    double seconds_since(const Event& start) const { return time - start.time; }
  };
};

/// A step of two micro-steps: forward takes 1 and 2 seconds, backward 10 and 20, the wait 100, the
/// optimizer 1000.
ToyDevice::Stream run_step(StepMarks<ToyDevice>& marks) {
  ToyDevice::Stream stream;
  stream.now = 5;
  marks.begin(stream);
  for (int64_t micro = 0; micro < 2; ++micro) {
    stream.now += micro == 0 ? 1 : 2;
    marks.forward(stream, micro);
    stream.now += micro == 0 ? 10 : 20;
    marks.backward(stream, micro);
  }
  stream.now += 100;
  marks.summed(stream);
  stream.now += 1000;
  marks.end(stream);
  return stream;
}

TEST(StepMarks, TellsAllParts) {
  StepMarks<ToyDevice> marks(StepTiming::kParts, 2);
  EXPECT_EQ(run_step(marks).marks, 7);
  const StepTimes times = marks.times();
  EXPECT_EQ(times.forward, 3);
  EXPECT_EQ(times.backward, 30);
  EXPECT_EQ(times.exposed, 100);
  EXPECT_EQ(times.optimizer, 1000);
  EXPECT_EQ(marks.wait_seconds(), 100);
}

TEST(StepMarks, TellsTheWaitByTwoMarks) {
  StepMarks<ToyDevice> marks(StepTiming::kWait, 2);
  EXPECT_EQ(run_step(marks).marks, 2);
  EXPECT_EQ(marks.wait_seconds(), 100);
  EXPECT_EQ(marks.times().total(), 0);
}

TEST(StepMarks, LeavesTheDeviceAloneWhenNobodyAsks) {
  StepMarks<ToyDevice> marks(StepTiming::kNone, 2);
  EXPECT_EQ(run_step(marks).marks, 0);
  EXPECT_EQ(marks.times().total(), 0);
}

}  // namespace
}  // namespace lockstep
