#pragma once

// Where the rows of q, k, v and dout lie in shared memory while attention works on a tile of them:
// as they stand in global memory, kHeadDim floats a row, with the 16-byte chunks of each row
// permuted so that every way in which a warp reads the tile is free of bank conflicts. Keys permute
// inside of eight chunks, so kHeadDim is a multiple of 32.

namespace lockstep::layout {

/// Tiles of the tensor-core kernels. A lane (g, t) reads chunk t of row g (its share of both
/// operands of q·k), and chunk g of rows 2 t and 2 t + 1 (of p·v): a quarter-warp's eight chunks
/// are {0 … 3} of two neighbouring rows, or two neighbours of four rows that lie two apart.
struct MmaTileKey {
  static constexpr int key(int row) { return (row & 6) ^ ((row & 1) << 2); }
};

/// Tiles of the fp32 kernels: half a warp reads one chunk of eight neighbouring rows, or eight
/// chunks of one row.
struct SimtTileKey {
  static constexpr int key(int row) { return row & 7; }
};

/// Offset in floats of chunk `chunk` of a row.
template <class Key, int kHeadDim>
constexpr int row_chunk(int row, int chunk) {
  static_assert(kHeadDim % 32 == 0, "the key permutes eight chunks");
  return row * kHeadDim + (chunk ^ Key::key(row)) * 4;
}

/// The fp32 kernels' probabilities on their way from the lanes that hold them to those that
/// multiply them: rows of kProbabilityColumns floats. Four neighbouring rows are written two chunks
/// wide at once, and read at one chunk.
inline constexpr int kProbabilityColumns = 32;
constexpr int probability_key(int row) {
  return (row & 3) << 1;
}
constexpr int probability_chunk(int row, int chunk) {
  return row * kProbabilityColumns + (chunk ^ probability_key(row)) * 4;
}

}  // namespace lockstep::layout
