#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/device/cpu_device.h"
#include "unit/model/reference_device.h"
#include "unit/model/tiny_gpt.h"

namespace lockstep {
namespace {

GptConfig small() {
  return {.vocab_size = 19, .block_size = 9, .n_layer = 3, .n_head = 3, .n_embd = 15};
}

TEST(BackwardRanges, DescendFromTheEndOfTheArenaAndCoverIt) {
  TinyGpt<CpuDevice> gpt(small(), 2, 9);
  CpuStream stream;
  std::vector<Range> ranges;
  gpt.forward(stream);
  gpt.model.backward(stream, false, [&](Range range) { ranges.push_back(range); });
  ASSERT_EQ(ranges.size(), 5U);
  int64_t begin = gpt.table.arena_size();
  for (const Range& range : ranges) {
    EXPECT_EQ(range.end, begin);
    EXPECT_FALSE(range.empty());
    begin = range.begin;
  }
  EXPECT_EQ(begin, 0);
}

// Neither early (nothing writes into a range once it is announced) nor late (the op before the
// announcement wrote into it).
TEST(BackwardRanges, AreAnnouncedRightBehindTheirLastWrite) {
  TinyGpt<ReferenceDevice> gpt(small(), 2, 9);
  ReferenceStream stream;
  gpt.forward(stream);
  std::fill(gpt.gradients.view().begin(), gpt.gradients.view().end(), 1e6F);  // no gradient's value
  std::vector<float> before = gpt.gradient_values();
  int64_t last_change = -1;
  int64_t announced = gpt.table.arena_size();
  stream.after_op = [&] {
    const std::vector<float> now = gpt.gradient_values();
    last_change = -1;
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i] != before[i]) {
        last_change = static_cast<int64_t>(i);
        EXPECT_LT(last_change, announced) << "written after its range was announced";
      }
    }
    before = now;
  };
  int count = 0;
  gpt.model.backward(stream, false, [&](Range range) {
    EXPECT_TRUE(range.begin <= last_change && last_change < range.end)
        << "the op before [" << range.begin << ", " << range.end << ") wrote " << last_change;
    announced = range.begin;
    ++count;
  });
  EXPECT_EQ(count, 5);
}

TEST(Backward, FollowsItsOwnForwardOnly) {
  TinyGpt<CpuDevice> gpt(small(), 2, 9);
  CpuStream stream;
  EXPECT_THROW(gpt.model.backward(stream, false, {}), InternalError);
  gpt.forward(stream);
  gpt.evaluate(stream);
  EXPECT_THROW(gpt.model.backward(stream, false, {}), InternalError);
  gpt.forward(stream);
  gpt.model.backward(stream, false, {});
  EXPECT_THROW(gpt.model.backward(stream, false, {}), InternalError);
}

}  // namespace
}  // namespace lockstep
