#pragma once

// Which part of a tile each thread or lane moves. Together with swizzle.h, which says where that
// part lies, this is all that decides whether a kernel is right and free of bank conflicts; both
// are plain constexpr functions.

#include "kernels/layout/swizzle.h"

namespace lockstep::layout {

/// A place in a tile of an operand.
struct Place {
  int extent = 0;
  int depth = 0;
  friend constexpr bool operator==(const Place&, const Place&) = default;
};

/// Staging through registers: the first of the four elements along the contiguous axis that a
/// thread holds in its i-th vector. Neighbouring threads walk that axis.
template <Major kMajor, int kExtent, int kDepth, int kThreads>
constexpr Place register_share(int thread, int i) {
  const int index = i * kThreads + thread;
  if constexpr (kMajor == Major::kK) {
    return {index / (kDepth / 4), index % (kDepth / 4) * 4};
  } else {
    return {index % (kExtent / 4) * 4, index / (kExtent / 4)};
  }
}

/// Transposing by 4-byte copies: the first element of a thread. A warp takes eight k of four
/// neighbouring indices of the extent, whole 32-byte sectors of a K-major operand.
constexpr Place transposing_share(int thread) {
  return {thread / 32 * 4 + thread % 32 / 8, thread % 8};
}

/// A K-major staged tile, by ldmatrix: which group index and which half of k each of the four
/// matrices is of, so that the four registers are one fragment of A or two of B.
template <Role kRole>
constexpr Place matrix_place(int matrix) {
  return kRole == Role::kA ? Place{matrix % 2, matrix / 2} : Place{matrix / 2, matrix % 2};
}
/// The offset of the row that the lane names for the first of a warp's matrices, those of group
/// indices 0 and 1 at k = 0; the warp's part of the tile starts at e0.
template <Role kRole, int kExtent, int kDepth, int kGroup>
constexpr int matrix_row_origin(int lane, int e0) {
  const Place matrix = matrix_place<kRole>(lane / 8);
  return staged_chunk<Major::kK, kExtent, kDepth, kGroup>(e0 + lane % 8 * kGroup + matrix.extent,
                                                          matrix.depth);
}
/// Of those from group index i on at k0, a multiple of eight. `origin` may be an address, in units
/// of kUnit bytes to a float.
template <int kDepth, int kUnit = 1, class Offset>
constexpr Offset matrix_row_offset(Offset origin, int k0, int i) {
  return (origin ^ static_cast<Offset>(k0 * kUnit)) + i * kDepth * kUnit;
}

/// An MN-major staged tile, by 16-byte loads: likewise the offset of the lane's values 0 ... 3 of
/// its group at k = 0, and of values i ... i + 3 at one half of the eight k.
template <int kExtent, int kDepth, int kGroup>
constexpr int group_origin(int lane, int e0) {
  return staged_chunk<Major::kMN, kExtent, kDepth, kGroup>(lane % 4, (e0 + lane / 4 * kGroup) / 4);
}
template <int kExtent, int kUnit = 1, class Offset>
constexpr Offset group_offset(Offset origin, int k0, int half, int i) {
  return (origin ^ static_cast<Offset>(i * kUnit)) + (k0 + 4 * half) * kExtent * kUnit;
}

/// The lanes of a warp of the fp32 kernels: kM x kN of them, each with pieces of 4 x 4 elements
/// that lie kPitchM and kPitchN apart. 8 x 4 in a square tile and 4 x 8 in a wide one, so that few
/// distinct values are read. Lanes 2 i and 2 i + 1 share a column and lanes that differ in bit 1 a
/// row: the hardware then serves a warp's 16-byte loads in two halves, not in four quarters.
template <int kWarpM, int kWarpN>
struct LaneGrid {
  static constexpr int kM = kWarpM >= kWarpN ? 8 : 4;
  static constexpr int kN = 32 / kM;
  static constexpr int kPitchM = kM * 4;
  static constexpr int kPitchN = kN * 4;
  static constexpr int row(int lane) { return (lane % 2 + lane / (2 * kN) * 2) * 4; }
  static constexpr int column(int lane) { return lane / 2 % kN * 4; }
};

}  // namespace lockstep::layout
