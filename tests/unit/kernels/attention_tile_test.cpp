// Where attention's tiles lie in shared memory, proven on the host.
#include "kernels/layout/attention_tile.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "kernels/layout/bank_conflicts.h"
#include "kernels/layout/token_order.h"

namespace lockstep::layout {
namespace {

template <class Offset>
int passes(int width, Offset offset) {
  std::array<int, 32> offsets{};
  for (int lane = 0; lane < 32; ++lane) {
    offsets[static_cast<size_t>(lane)] = offset(lane);
  }
  return bank_passes(offsets, width);
}

template <class Key, int kHeadDim>
void expect_rows_permuted() {
  for (int row = 0; row < 64; ++row) {
    std::set<int> seen;
    for (int chunk = 0; chunk < kHeadDim / 4; ++chunk) {
      const int at = row_chunk<Key, kHeadDim>(row, chunk);
      EXPECT_EQ(at % 4, 0);
      EXPECT_EQ(at / kHeadDim, row);
      EXPECT_TRUE(seen.insert(at).second) << "row " << row << ", chunk " << chunk;
      // A thread that fills every eighth row finds each place from its first.
      const int first = row_chunk<Key, kHeadDim>(row % 8, chunk % 8);
      EXPECT_EQ(at, first + row / 8 * 8 * kHeadDim + chunk / 8 * 32);
    }
  }
}

TEST(AttentionTile, PermutesChunksInsideOfRows) {
  expect_rows_permuted<MmaTileKey, 32>();
  expect_rows_permuted<MmaTileKey, 64>();
  expect_rows_permuted<MmaTileKey, 96>();
  expect_rows_permuted<SimtTileKey, 64>();
  expect_rows_permuted<SimtTileKey, 128>();
}

TEST(AttentionTile, IsReadWithoutConflictsByTensorCoreKernels) {
  constexpr int kHeadDim = 64;
  using Key = MmaTileKey;
  for (int pair = 0; pair < kHeadDim / 16; ++pair) {
    EXPECT_EQ(
        passes(4,
               [&](int lane) { return row_chunk<Key, kHeadDim>(lane / 4, 4 * pair + lane % 4); }),
        1);
  }
  for (int odd = 0; odd < 2; ++odd) {
    EXPECT_EQ(
        passes(4,
               [&](int lane) { return row_chunk<Key, kHeadDim>(2 * (lane % 4) + odd, lane / 4); }),
        1);
  }
}

TEST(AttentionTile, IsReadWithoutConflictsByFp32Kernels) {
  constexpr int kHeadDim = 64;
  using Key = SimtTileKey;
  for (int chunk = 0; chunk < kHeadDim / 4; ++chunk) {
    // Eight columns of scores, and four rows, by the lanes of simt_products.cuh.
    EXPECT_EQ(passes(4, [&](int lane) { return row_chunk<Key, kHeadDim>(lane % 16 / 2, chunk); }),
              1);
    EXPECT_EQ(passes(4,
                     [&](int lane) {
                       return row_chunk<Key, kHeadDim>(4 + lane % 2 + lane / 16 * 2, chunk);
                     }),
              1);
  }
  for (int row = 0; row < 8; ++row) {
    EXPECT_EQ(passes(4, [&](int lane) { return row_chunk<Key, kHeadDim>(row, lane % 16 / 2); }), 1);
  }
}

TEST(ProbabilityTile, IsWrittenAndReadWithoutConflicts) {
  const auto y = [](int lane) { return lane % 2 + lane / 16 * 2; };
  const auto x = [](int lane) { return lane % 16 / 2; };
  for (int chunk = 0; chunk < kProbabilityColumns / 4; ++chunk) {
    EXPECT_EQ(passes(4, [&](int lane) { return probability_chunk(y(lane), chunk); }), 1);
  }
  for (int j = 0; j < 4; ++j) {
    EXPECT_EQ(passes(1,
                     [&](int lane) {
                       return probability_chunk(y(lane), 2 * j + x(lane) / 4) + x(lane) % 4;
                     }),
              1);
  }
}

// Lane t has sums of two neighbouring tokens, and as a left operand places t and t + 4.
TEST(TokenOrder, GivesALaneOfTheOperandTheTokensOfItsSums) {
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(token_at(t), 2 * t);
    EXPECT_EQ(token_at(t + 4), 2 * t + 1);
  }
}

}  // namespace
}  // namespace lockstep::layout
