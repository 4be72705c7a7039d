#pragma once

#include "kernels/cpu/simd.h"

// The innermost product: one tile of c held in registers over a whole block of k.
namespace lockstep::LOCKSTEP_ISA {

// Tile sizes by registers: of 32 (AVX-512) 28 hold sums, of 16 12 do, and the rest a row of b and
// an element of a. Fewer rows serve the edges: every count has its own code.
#if defined(__AVX512F__)
inline constexpr int kTileRows = 14;
#else
inline constexpr int kTileRows = 6;
#endif
inline constexpr int kTileVecs = 2;
inline constexpr int kTileColumns = kTileVecs * kLanes;

/// The operands of a tile. out = a · b, or out + a · b when `add` is set; each sum is made from
/// zero in the order of p, whatever the tile's size, and finished before it is added.
struct TileArgs {
  int64_t k = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;  ///< between rows of a, or between columns when those are contiguous
  const float* b = nullptr;
  int64_t b_stride = 0;  ///< between rows of b
  float* out = nullptr;
  int64_t out_stride = 0;
  bool add = false;
};

using TileKernel = void (*)(const TileArgs& args);

/// The kernel for a tile of `rows` in [1, kTileRows] by `vecs` in [1, kTileVecs] vectors.
/// `a_by_columns`: element (i, p) of a is a[i + p * a_stride], else a[i * a_stride + p].
TileKernel tile_kernel(int64_t rows, int64_t vecs, bool a_by_columns);

}  // namespace lockstep::LOCKSTEP_ISA
