#pragma once

// What the wgmma kernel computes where. Plain constexpr functions, tested on the host.

namespace lockstep::layout {

/// Floats of k in a tile: one row is 128 bytes, the span of the swizzle.
inline constexpr int kWarpgroupDepth = 32;

/// Offset in floats of chunk `chunk` (four k) of row `row` of a K-major tile, as the tensor memory
/// accelerator swizzles it.
constexpr int swizzled_chunk(int row, int chunk) {
  return row * kWarpgroupDepth + (chunk ^ (row & 7)) * 4;
}

/// Rows of m in a panel of an MN-major tile: one k of them is 128 bytes.
inline constexpr int kPanelRows = 32;
inline constexpr int kPanelFloats = kPanelRows * kWarpgroupDepth;

/// Offset in floats of (row, k) of an MN-major tile, panel after panel, as the tensor memory
/// accelerator swizzles them.
constexpr int panel_offset(int row, int k) {
  const int chunk = row % kPanelRows / 4;
  return row / kPanelRows * kPanelFloats + k * kPanelRows + (chunk ^ (k & 7)) * 4 + row % 4;
}

/// The row of an MN-major tile that warp `warp` has as its `row`-th of sixteen. The eight that it
/// reads at once, at four neighbouring k, are two chunks of four, four chunks apart: eight
/// different chunks under the keys of four k.
constexpr int panel_row(int warp, int row) {
  const int chunk = warp % 2 * 2 + row / 8 + row % 8 / 4 * 4;
  return warp / 2 * kPanelRows + chunk * 4 + row % 4;
}

/// Two warpgroups multiply. Behind them one warp has tiles brought: alone, or the first of a third
/// warpgroup where registers are shared out, of which the others split b's factors if need be.
inline constexpr int kMultiplyingWarps = 8;
inline constexpr int kSplittingWarps = 3;

/// A warp's 16 rows of sums, on their way to global memory: rows eight floats longer than they need
/// to be, so that the pairs of a warp's four lanes of four rows hit 32 banks.
constexpr int warp_sums_pitch(int columns) {
  return columns + 8;
}
constexpr int warp_sums_floats(int columns) {
  return 16 * warp_sums_pitch(columns);
}

struct TileCoordinate {
  int m;
  int n;
};

/// The tile of a block: eight tiles of m at a time, for all n, so that the blocks that run together
/// share their operands' tiles in the L2 cache.
constexpr TileCoordinate tile_of_block(int block, int tiles_m, int tiles_n) {
  constexpr int band = 8;
  const int first = block / (band * tiles_n) * band;
  const int height = tiles_m - first < band ? tiles_m - first : band;
  const int within = block % (band * tiles_n);
  return {first + within % height, within / height};
}

}  // namespace lockstep::layout
