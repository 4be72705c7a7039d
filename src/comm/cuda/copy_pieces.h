#pragma once

#include <cstdint>
#include <vector>

#include "core/base/range.h"

namespace lockstep {

/// The least elements of a piece: a copy of 16 MiB takes 45 microseconds over the link between two
/// H200, beside which what surrounds a copy is short, and one is added in a third of that.
inline constexpr int64_t kLeastPieceElements = 4 << 20;
inline constexpr int kMostPieces = 64;

/// The parts in which copy engines move a range behind which nothing else is to be done, so that
/// one is added while the next is copied: in order, of equal sizes but for whole packs, which none
/// shares with another; one for a range of fewer than two times kLeastPieceElements, and at most
/// kMostPieces. `range` is not empty. Pure: the same on all ranks.
std::vector<Range> copy_pieces(Range range);

}  // namespace lockstep
