#include "comm/cuda/copy_pieces.h"

#include <algorithm>

#include "comm/cuda/peer_words.h"

namespace lockstep {

std::vector<Range> copy_pieces(Range range) {
  const int64_t count = std::clamp<int64_t>(range.size() / kLeastPieceElements, 1, kMostPieces);
  std::vector<Range> pieces;
  Range piece{range.begin, range.begin};
  for (int64_t i = 1; i <= count; ++i) {
    piece.begin = piece.end;
    const int64_t end = range.begin + range.size() / count * i;
    piece.end = i == count ? range.end : end / kPackElements * kPackElements;
    pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace lockstep
