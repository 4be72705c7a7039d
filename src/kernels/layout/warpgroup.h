#pragma once

// What the wgmma kernel computes where. Plain constexpr functions, tested on the host.

namespace lockstep::layout {

/// Floats of k in a tile: one row is 128 bytes, the span of the swizzle.
inline constexpr int kWarpgroupDepth = 32;

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
