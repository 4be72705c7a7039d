#include "comm/cuda/copy_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "comm/cuda/peer_words.h"

namespace lockstep {
namespace {

constexpr int64_t kLeast = kLeastPieceElements;

TEST(CopyPieces, CoverTheRangeInOrderAndShareNoPack) {
  for (const int64_t begin : {int64_t{0}, int64_t{1}, int64_t{6}, 5 * kLeast + 3}) {
    for (const int64_t size :
         {int64_t{1}, int64_t{3}, kLeast - 1, kLeast, 2 * kLeast - 1, 2 * kLeast, 3 * kLeast + 1,
          9 * kLeast + 2, kMostPieces * kLeast, 3 * kMostPieces * kLeast + 5}) {
      SCOPED_TRACE(testing::Message() << size << " from " << begin);
      const Range range{begin, begin + size};
      const std::vector<Range> pieces = copy_pieces(range);
      ASSERT_LE(pieces.size(), static_cast<size_t>(kMostPieces));
      EXPECT_EQ(pieces.size() > 1, size >= 2 * kLeast);
      int64_t at = range.begin;
      for (const Range& piece : pieces) {
        EXPECT_EQ(piece.begin, at);
        EXPECT_FALSE(piece.empty());
        EXPECT_TRUE(piece.begin == range.begin || piece.begin % kPackElements == 0);
        at = piece.end;
      }
      EXPECT_EQ(at, range.end);
    }
  }
}

TEST(CopyPieces, AreOfOneSize) {
  for (const int64_t size : {7 * kLeast + 3, 200 * kLeast}) {
    for (const Range& piece : copy_pieces({2, 2 + size})) {
      EXPECT_GE(piece.size(), kLeast - kPackElements);
      EXPECT_LE(piece.size(), std::max(2 * kLeast, size / kMostPieces) + 2 * kMostPieces);
    }
  }
}

}  // namespace
}  // namespace lockstep
