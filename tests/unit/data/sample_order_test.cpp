#include "core/data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr int64_t kBlock = 16;

struct Size {
  int64_t tokens;
  int64_t block_size;

  /// Of an epoch, which leaves out less than two of the stream.
  int64_t windows() const { return std::max<int64_t>(1, (tokens - 1) / block_size - 1); }
};

std::vector<int64_t> epoch_of(uint64_t seed, const Size& size, int64_t epoch) {
  const SampleOrder order(seed, size.tokens, size.block_size);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < size.windows(); ++i) {
    offsets.push_back(order.offset(epoch * size.windows() + i));
  }
  return offsets;
}

class SampleOrderSizes : public testing::TestWithParam<Size> {};

TEST_P(SampleOrderSizes, VisitsEveryWindowOnceInEachEpoch) {
  const auto [tokens, block_size] = GetParam();
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<int64_t> offsets = epoch_of(3, GetParam(), epoch);
    std::sort(offsets.begin(), offsets.end());
    EXPECT_GE(offsets.front(), 0);
    // The last target is one past the last input.
    EXPECT_LE(offsets.back() + block_size, tokens - 1);
    for (size_t i = 1; i < offsets.size(); ++i) {
      ASSERT_EQ(offsets[i] - offsets[i - 1], block_size) << "epoch " << epoch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SampleOrderSizes,
                         testing::Values(Size{2, 1}, Size{3, 1}, Size{4, 1}, Size{5, 1}, Size{6, 1},
                                         Size{100, 1}, Size{9, 8}, Size{10, 8}, Size{16, 8},
                                         Size{17, 8}, Size{24, 8}, Size{25, 8}, Size{33, 8},
                                         Size{1000, 8}, Size{1025, 8}, Size{1033, 8},
                                         Size{4096 * 64 + 65, 64}));

TEST(SampleOrder, DiffersBetweenEpochsAndSeeds) {
  constexpr Size size{10001, 10};
  EXPECT_NE(epoch_of(1, size, 0), epoch_of(1, size, 1));
  EXPECT_NE(epoch_of(1, size, 0), epoch_of(2, size, 0));
  EXPECT_EQ(epoch_of(1, size, 1), epoch_of(1, size, 1));
}

TEST(SampleOrder, StartsEpochsAtEveryPhase) {
  std::set<int64_t> phases;
  for (int64_t epoch = 0; epoch < 500; ++epoch) {
    const std::vector<int64_t> offsets = epoch_of(5, {1601, kBlock}, epoch);
    phases.insert(*std::min_element(offsets.begin(), offsets.end()) % kBlock);
  }
  EXPECT_EQ(phases.size(), static_cast<size_t>(kBlock));
}

// Where window number 0 and 1 of an epoch come in its order should be uniform over epochs.
TEST(SampleOrder, LooksRandom) {
  for (const int64_t windows : {int64_t{5}, int64_t{16}, int64_t{37}}) {
    const Size size{(windows + 1) * 4 + 1, 4};
    ASSERT_EQ(size.windows(), windows);
    constexpr int64_t epochs = 20000;
    std::vector<double> first(static_cast<size_t>(windows));
    std::vector<double> step(static_cast<size_t>(windows));
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      const std::vector<int64_t> offsets = epoch_of(11, size, epoch);
      const int64_t phase = *std::min_element(offsets.begin(), offsets.end());
      const auto window = [&](size_t i) { return (offsets[i] - phase) / 4; };
      first[static_cast<size_t>(window(0))] += 1;
      step[static_cast<size_t>((window(1) - window(0) + windows) % windows)] += 1;
    }
    const auto chi_square = [&](const std::vector<double>& counts, size_t from) {
      const auto cells = static_cast<double>(counts.size() - from);
      const double expected = epochs / cells;
      double sum = 0;
      for (size_t i = from; i < counts.size(); ++i) {
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
      }
      // Mean cells - 1, deviation sqrt(2 (cells - 1)): five deviations above is one in millions.
      return (sum - (cells - 1)) / std::sqrt(2 * (cells - 1));
    };
    EXPECT_LT(chi_square(first, 0), 5) << windows;
    EXPECT_LT(chi_square(step, 1), 5) << windows;  // two windows of an epoch always differ
  }
}

TEST(SampleOrder, RefusesAStreamWithoutAWindow) {
  EXPECT_THROW(SampleOrder(1, 8, 8), InternalError);
  EXPECT_THROW(SampleOrder(1, 8, 0), InternalError);
  EXPECT_THROW(SampleOrder(1, 9, 8).offset(-1), InternalError);
}

TEST(EvaluationOffset, SpreadsEvenlyAndStaysInside) {
  const int64_t tokens = 1003;
  for (const int64_t count : {1, 2, 7, 100, 986, 987}) {
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < count; ++i) {
      offsets.push_back(evaluation_offset(i, count, tokens, kBlock));
    }
    EXPECT_EQ(offsets.front(), 0);
    EXPECT_LE(offsets.back() + kBlock, tokens - 1);
    for (size_t i = 1; i < offsets.size(); ++i) {
      const int64_t gap = offsets[i] - offsets[i - 1];
      ASSERT_GE(gap, (tokens - kBlock) / count);  // >= 1: distinct
      ASSERT_LE(gap, (tokens - kBlock) / count + 1);
    }
  }
}

TEST(EvaluationOffset, RepeatsWhenThereAreFewerPlacesThanWindows) {
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t offset = evaluation_offset(i, 10, 12, 8);
    EXPECT_GE(offset, 0);
    EXPECT_LE(offset + 8, 11);
  }
  EXPECT_THROW(evaluation_offset(0, 10, 8, 8), InternalError);
  EXPECT_THROW(evaluation_offset(10, 10, 100, 8), InternalError);
}

}  // namespace
}  // namespace lockstep
