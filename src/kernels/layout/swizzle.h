#pragma once

// Where the elements of a staged tile lie in shared memory. Plain constexpr functions: kernels
// index with them, host tests prove them to be bijections and count their bank conflicts.
//
// A tile of an operand is seen as (extent, depth): the extent runs along m or n, the depth along k.

namespace lockstep::layout {

/// Which axis of an operand is contiguous in memory.
enum class Major : bool { kK, kMN };

// --- Tiles filled by 16-byte copies ---
//
// The contiguous axis of global memory stays contiguous, so that an asynchronous copy can fill the
// tile:
//   K-major   one row per index of the extent, kDepth floats of k           [extent][depth]
//   MN-major  one row per k, kExtent floats of m or n                       [depth][extent]
// and the 16-byte chunks of a row are permuted by a key of the row, so that what a warp reads at
// once spreads over all banks. The stores need no care: the threads that fill a row together write
// all of its chunks. Every key is made of bits of the row, so that key(a + b) = key(a) ^ key(b)
// when a and b have no bit in common: a thread that fills rows a power of two apart finds each
// one's place from the first one's.
//
// A lane (g = lane / 4, t = lane % 4) of a warp owns kGroup neighbouring indices of the extent,
// kGroup g … + kGroup - 1.

/// K-major: ldmatrix reads one chunk of eight rows that lie kGroup apart.
template <int kGroup>
constexpr int k_major_key(int row) {
  return (row / kGroup) & 7;
}

/// MN-major: a quarter-warp reads rows k = t = 0 … 3 at the chunks of two neighbouring g, kGroup /
/// 4 apart. Keys {0, 1, 4, 5} for two apart and {0, 2, 4, 6} for one apart keep its eight chunks
/// distinct.
template <int kGroup>
constexpr int mn_major_key(int k) {
  static_assert(kGroup == 4 || kGroup == 8);
  return kGroup == 8 ? (k & 1) | ((k & 2) << 1) : (k & 3) << 1;
}

template <Major kMajor, int kGroup>
constexpr int staged_key(int row) {
  return kMajor == Major::kK ? k_major_key<kGroup>(row) : mn_major_key<kGroup>(row);
}

/// Offset in floats of chunk `chunk` of row `row` of a staged tile.
template <Major kMajor, int kExtent, int kDepth, int kGroup>
constexpr int staged_chunk(int row, int chunk) {
  constexpr int row_floats = kMajor == Major::kK ? kDepth : kExtent;
  static_assert(row_floats % 32 == 0, "the key permutes eight chunks");
  return row * row_floats + (chunk ^ staged_key<kMajor, kGroup>(row)) * 4;
}

/// Offset in floats of element (extent, depth).
template <Major kMajor, int kExtent, int kDepth, int kGroup>
constexpr int staged_offset(int extent, int depth) {
  const int row = kMajor == Major::kK ? extent : depth;
  const int column = kMajor == Major::kK ? depth : extent;
  return staged_chunk<kMajor, kExtent, kDepth, kGroup>(row, column / 4) + column % 4;
}

// --- Tiles of the fp32 kernels ---
//
// Always MN-major, [depth][extent]: at one k all lanes of a warp read the same row, so reads need
// no key. A K-major operand is transposed on its way in by 4-byte copies, a warp taking eight k of
// four neighbouring rows at a time: rows that are four floats longer than the extent make these 32
// stores hit 32 banks. A key would do so too, but costs an address for each k; behind a pad every
// offset is a constant of the instruction.

/// Offset in floats of element (extent, k) of a tile whose rows are kPitch floats long.
template <int kPitch>
constexpr int outer_product_offset(int extent, int k) {
  static_assert(kPitch % 32 == 4, "eight rows start four banks apart");
  return k * kPitch + extent;
}

// --- Tiles stored in the order of mma fragments ---
//
// Sixteen indices of the extent by eight of k make one block of 32 lanes x 4 registers
// (mma_fragment.h): a lane fetches its four elements by one 16-byte load, without conflicts. What
// costs is filling the tile, element by element.

/// Which operand a fragment belongs to: they order a lane's four registers differently.
enum class Role : bool { kA, kB };

/// The permutation of a block's lanes. It has to vary over the warp that fills the tile and may
/// vary over the warp that reads a block only so that each eight lanes stay eight distinct ones;
/// which axis the filling warp walks is decided by the major. K-major: it walks the extent inside
/// of a block, so the key is made of those bits of the lane. MN-major: it walks over the blocks, so
/// the key is the block's number.
template <Major kMajor>
constexpr int fragment_key(int block, int lane) {
  return kMajor == Major::kK ? (lane >> 3) & 3 : block & 7;
}

/// Offset in floats of element (extent, depth) of a tile of kExtent in fragment order.
template <Major kMajor, Role kRole, int kExtent>
constexpr int fragment_offset(int extent, int depth) {
  const int block = extent / 16;
  const int lane = extent % 8 * 4 + depth % 4;
  const int upper_extent = extent / 8 % 2;
  const int upper_depth = depth / 4 % 2;
  const int index =
      kRole == Role::kA ? upper_extent + 2 * upper_depth : upper_depth + 2 * upper_extent;
  return (depth / 8 * (kExtent / 16) + block) * 128 +
         (lane ^ fragment_key<kMajor>(block, lane)) * 4 + index;
}

}  // namespace lockstep::layout
