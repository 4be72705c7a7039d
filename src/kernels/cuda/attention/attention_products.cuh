#pragma once

// What the flash kernels are made of: products on one warp's tile of scores. simt_products.cuh and
// mma_products.cuh have two kinds.

#include <cmath>
#include <concepts>

#include "kernels/cuda/attention/heads.cuh"

namespace lockstep::cuda {

/// A warp's tile has kTileRows rows by kTileColumns columns, of which a lane has kRows and
/// kColumns:
///   Key               how rows are permuted in tiles in shared memory (layout/attention_tile.h)
///   Scores            float [kRows][kColumns]: the tile's elements (row(i), column(j))
///   Sums              a lane's share of kRows rows of kHeadDim elements
///   Left(tile_rows)   rows of a tile in shared memory as the left operand of scores; they start at
///                     a multiple of eight rows of their tile
///   scores            s = left · rightᵀ, for kTileColumns rows of a tile
///   accumulate        sums += p · right, for kTileColumns rows of a tile; `scratch` is shared
///                     memory of the warp's own, kScratchFloats of it
///   scale_row         sums of the lane's i-th row times a factor
///   for_each4         visit(d, value) for each run of four elements, from d on, that the lane has
///                     of its i-th row
///   reduce_row        of a value for each lane, over the lanes that share a row: in each of them
///   first_of_row      holds for one of the lanes that share a row
template <class Products>
concept AttentionProducts = requires(typename Products::Scores& s, typename Products::Sums& sums,
                                     const float* tile, float* scratch,
                                     float (*operation)(float, float), void (*visit)(int, float4)) {
  typename Products::Key;
  { Products::kHeadDim } -> std::convertible_to<int>;
  { Products::kRows } -> std::convertible_to<int>;
  { Products::kColumns } -> std::convertible_to<int>;
  { Products::kTileRows } -> std::convertible_to<int>;
  { Products::kTileColumns } -> std::convertible_to<int>;
  { Products::kScratchFloats } -> std::convertible_to<int>;
  { Products::row(0) } -> std::same_as<int>;
  { Products::column(0) } -> std::same_as<int>;
  { Products::first_of_row() } -> std::same_as<bool>;
  { Products::reduce_row(0.0F, operation) } -> std::same_as<float>;
  Products::scores(s, typename Products::Left(tile), tile);
  Products::accumulate(sums, s, tile, scratch);
  Products::scale_row(sums, 0, 1.0F);
  Products::for_each4(sums, 0, visit);
};

/// Leaves no weight to the scores of a tile for which hidden(row, column).
template <AttentionProducts Products, class Hidden>
__device__ void mask(typename Products::Scores& s, Hidden hidden) {
#pragma unroll
  for (int i = 0; i < Products::kRows; ++i) {
#pragma unroll
    for (int j = 0; j < Products::kColumns; ++j) {
      if (hidden(Products::row(i), Products::column(j))) {
        s[i][j] = -INFINITY;
      }
    }
  }
}

/// Writes the i-th row of a lane's sums to a head's row.
template <AttentionProducts Products>
__device__ void store_row(const typename Products::Sums& sums, int i, float* row,
                          const Heads& heads) {
  Products::for_each4(sums, i, [&](int d, float4 value) { store_row4(row, d, value, heads); });
}

}  // namespace lockstep::cuda
