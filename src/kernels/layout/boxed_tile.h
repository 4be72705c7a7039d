#pragma once

// Tiles that the tensor memory accelerator fills, as mma.sync reads them: boxes with rows of 128
// bytes, whose 16-byte chunks it permutes by the row (warpgroup.h). The swizzle is given, so what
// is chosen here is which index of the extent each row or column of an instruction is, such that
// no access of a warp meets itself in a bank, and such that fragments arrive in the order in which
// the instruction wants their registers.
//
// A warp's part of a tile is 64 indices of the extent, from e0 on. It is read as the instruction's
// left operand, four times sixteen rows, or its right one, eight times eight columns. A lane is
// (g = lane / 4, t = lane % 4). Offsets are in floats; those along a tile may be addresses, in
// units of kUnit bytes to a float.

#include "kernels/layout/swizzle.h"
#include "kernels/layout/thread_map.h"
#include "kernels/layout/warpgroup.h"

namespace lockstep::layout {

/// kA is the left operand of an instruction, kB its right one, whatever they are of the product.
using Side = Role;

// --- K-major: ldmatrix reads one chunk of eight neighbouring rows, which have eight keys ---

/// The offset that the lane names for the first four matrices at k = 0: see matrix_place.
template <Side kSide>
constexpr int boxed_matrix_origin(int lane, int e0) {
  const Place matrix = matrix_place<kSide>(lane / 8);
  return swizzled_chunk(e0 + matrix.extent * 8 + lane % 8, matrix.depth);
}
/// For the matrices of indices from 8 i on, at k0, a multiple of eight.
template <int kUnit = 1, class Offset>
constexpr Offset boxed_matrix_offset(Offset origin, int k0, int i) {
  return matrix_row_offset<8 * kWarpgroupDepth, kUnit>(origin, k0, i);
}

// --- MN-major: a lane reads of row k = t, and of k = t + 4. The keys of four neighbouring k differ
// in two bits, so the chunks that are read of a row at once differ in the third. ---

/// Left: 8-byte loads bring two neighbours, rows g and g + 8 of the instruction. The first for
/// sixteen `sixteen`; half a warp reads four g.
constexpr int boxed_pair(int sixteen, int g) {
  const int chunk = sixteen % 2 * 2 + g / 4 + g / 2 % 2 * 4;
  return sixteen / 2 * kPanelRows + chunk * 4 + g % 2 * 2;
}
constexpr int boxed_pair_origin(int lane, int e0) {
  return panel_offset(e0 + boxed_pair(0, lane / 4), lane % 4);
}
/// For k = k0 + t + 4 half.
template <int kUnit = 1, class Offset>
constexpr Offset boxed_pair_offset(Offset origin, int k0, int half, int sixteen) {
  return (origin ^ static_cast<Offset>((sixteen % 2 * 8 + half * 16) * kUnit)) +
         ((k0 + half * 4) * kPanelRows + sixteen / 2 * kPanelFloats) * kUnit;
}

/// Right: 4-byte loads, since an instruction's register pair has two k of one column.
constexpr int boxed_single(int eight, int g) {
  const int chunk = eight % 4 + g / 4 * 4;
  return eight / 4 * kPanelRows + chunk * 4 + g % 4;
}
constexpr int boxed_single_origin(int lane, int e0) {
  return panel_offset(e0 + boxed_single(0, lane / 4), lane % 4);
}
template <int kUnit = 1, class Offset>
constexpr Offset boxed_single_offset(Offset origin, int k0, int half, int eight) {
  return (origin ^ static_cast<Offset>((eight % 4 * 4 + half * 16) * kUnit)) +
         ((k0 + half * 4) * kPanelRows + eight / 4 * kPanelFloats) * kUnit;
}

/// Which index of the extent row `row` (0 ... 15) of the sixteen `i`, or column `row` (0 ... 7) of
/// the eight `i`, is. Columns 2 t and 2 t + 1 are always neighbours, and so are rows g and g + 8 of
/// an MN-major operand.
template <Side kSide, Major kMajor>
constexpr int boxed_extent(int i, int row) {
  if constexpr (kSide == Side::kA) {
    return kMajor == Major::kK ? i * 16 + row : boxed_pair(i, row % 8) + row / 8;
  } else {
    return kMajor == Major::kK ? i * 8 + row : boxed_single(i, row);
  }
}

}  // namespace lockstep::layout
