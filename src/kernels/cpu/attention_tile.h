#pragma once

#include "kernels/cpu/attention_isa.h"
#include "kernels/cpu/gemm_pack.h"
#include "kernels/cpu/gemm_tile.h"

// What attention's forward and backward share. A tile's queries stand in the lanes of vectors and
// keys go by one by one, as broadcast elements read straight from the packed projection: maximum,
// sum and mask are then plain vector operations, and only what belongs to the tile is ever
// rearranged.
namespace lockstep::LOCKSTEP_ISA {

// Queries of a tile. A narrow tile computes fewer scores that the mask then hides: 32 queries
// compute 1.5 times what 64 positions need, 16 queries 1.2 times. A wide one reads less for each
// operation, which 16 registers need, and backward's products over queries are longer.
#if defined(__AVX512F__)
inline constexpr int kForwardQueries = kLanes;
#else
inline constexpr int kForwardQueries = kTileColumns;
#endif
inline constexpr int kBackwardQueries = kTileColumns;

/// The queries [begin, begin + count) of a head. Lanes behind the last query compute on zeros.
struct QueryTile {
  int64_t begin;
  int64_t count;
  int vecs;
  int64_t width;  ///< of the tile's packed matrices: whole vectors

  QueryTile(const AttentionHead& head, int64_t index, int64_t queries) : begin(index * queries) {
    const int64_t left = head.time - begin;
    count = left < queries ? left : queries;
    vecs = count > kLanes ? kTileVecs : 1;
    width = vecs * kLanes;
  }
  int64_t end() const { return begin + count; }
};

/// The left operand of a product.
struct LeftMatrix {
  const float* data;
  int64_t stride;
  bool by_columns;  ///< element (i, p) is data[i + p * stride], else data[i * stride + p]

  const float* row(int64_t i) const { return data + (by_columns ? i : i * stride); }
};
inline LeftMatrix rows_of(const float* data, int64_t stride) {
  return {data, stride, false};
}
inline LeftMatrix columns_of(const float* data, int64_t stride) {
  return {data, stride, true};
}

struct RightMatrix {
  const float* data;
  int64_t stride;
};

struct Target {
  float* data;
  int64_t stride;
  bool add;
};

/// to (+)= a · b for `vecs` vectors of columns of b; rows are shared evenly among tiles.
inline void product(int64_t rows, int64_t depth, const LeftMatrix& a, const RightMatrix& b,
                    int vecs, const Target& to) {
  const int64_t pieces = (rows + kTileRows - 1) / kTileRows;
  int64_t i = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t end = (piece + 1) * rows / pieces;
    tile_kernel(end - i, vecs, a.by_columns)({.k = depth,
                                              .a = a.row(i),
                                              .a_stride = a.stride,
                                              .b = b.data,
                                              .b_stride = b.stride,
                                              .out = to.data + i * to.stride,
                                              .out_stride = to.stride,
                                              .add = to.add});
    i = end;
  }
}

constexpr int64_t whole_vectors(int64_t size) {
  return (size + kLanes - 1) / kLanes * kLanes;
}

/// Where the parts of the scratch memory lie. `size` needs no memory.
struct ForwardScratch {
  float* queries;     // (D, tile): q transposed
  float* sums;        // (D, tile): out transposed
  float* scores;      // (keys, tile)
  float* transposed;  // (tile, D): out
  int64_t size;

  ForwardScratch(int64_t head_dim, float* memory)
      : queries(memory),
        sums(queries + head_dim * kTileColumns),
        scores(sums + head_dim * kTileColumns),
        transposed(scores + kKeyBlock * kTileColumns),
        size(transposed + whole_vectors(head_dim) * kTileColumns - memory) {}
};
struct BackwardScratch {
  ForwardScratch forward;  // sums: dq transposed; scores: probabilities
  float* douts;            // (D, tile): dout transposed
  float* dscores;          // (keys, tile)
  float* query_rows;       // (tile, D) in panels: q
  float* dout_rows;        // (tile, D) in panels
  float* edge;             // (keys, panel): a product whose last columns do not exist
  int64_t size;

  BackwardScratch(int64_t head_dim, float* memory)
      : forward(head_dim, memory),
        douts(memory + forward.size),
        dscores(douts + head_dim * kTileColumns),
        query_rows(dscores + kKeyBlock * kTileColumns),
        dout_rows(query_rows + whole_vectors(head_dim) * kTileColumns),
        edge(dout_rows + whole_vectors(head_dim) * kTileColumns),
        size(edge + kKeyBlock * kTileColumns - memory) {}
};

/// Each of `rows` vectors, `stride` apart, times `factor`.
inline void scale_column(float* x, int64_t rows, int64_t stride, FloatVec factor) {
  for (int64_t i = 0; i < rows; ++i) {
    store(x + i * stride, load(x + i * stride) * factor);
  }
}

/// Scores of keys [key, key + keys) later than their query become `value`.
inline void mask_future(float* scores, const QueryTile& tile, int64_t key, int64_t keys,
                        float value) {
  IntVec lane;
  for (int i = 0; i < kLanes; ++i) {
    lane[i] = i;
  }
  for (int64_t j = key > tile.begin ? 0 : tile.begin - key; j < keys; ++j) {
    const auto own = static_cast<int32_t>(key + j - tile.begin);  // the lane of the key's own query
    for (int v = 0; v < tile.vecs; ++v) {
      float* at = scores + j * tile.width + v * kLanes;
      store(at, select(lane + v * kLanes < broadcast_int(own), broadcast(value), load(at)));
    }
  }
}

/// The factor of q·k: 1 / sqrt(D).
inline float scale_of(const AttentionHead& head) {
  return 1.0F / __builtin_sqrtf(static_cast<float>(head.head_dim));
}

/// q transposed: (D, tile).
inline void pack_queries(float* to, const AttentionHead& head, const QueryTile& tile) {
  const int64_t stride = 3 * head.channels;
  pack_b(to, head.q + tile.begin * stride, 1, stride, head.head_dim, tile.count);
}

/// Writes x (D, tile) to the rows of the tile's queries, `stride` apart.
inline void store_transposed(float* to, int64_t stride, const float* x, const QueryTile& tile,
                             int64_t head_dim, float* scratch) {
  pack_b(scratch, x, 1, tile.width, tile.count, head_dim);
  for (int64_t panel = 0; panel < head_dim; panel += kTileColumns) {
    const int64_t left = head_dim - panel;
    const int64_t width = left > kLanes ? kTileColumns : kLanes;
    for (int64_t i = 0; i < tile.count; ++i) {
      for (int64_t d = 0; d < width && d < left; d += kLanes) {
        const int64_t count = left - d < kLanes ? left - d : int64_t{kLanes};
        store_first(to + i * stride + panel + d, load(scratch + i * width + d), count);
      }
    }
    scratch += width * tile.count;
  }
}

inline float dot(int64_t count, const float* a, const float* b) {
  FloatVec sum = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    sum = multiply_add(load(a + i), load(b + i), sum);
  }
  if (i < count) {
    sum = multiply_add(load_first(a + i, count - i), load_first(b + i, count - i), sum);
  }
  return sum_lanes(sum);
}

}  // namespace lockstep::LOCKSTEP_ISA
