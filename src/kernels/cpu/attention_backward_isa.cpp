#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/simd_math.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// A block of keys as one tile of queries sees it.
struct KeyBlock {
  int64_t begin;
  int64_t count;

  /// Keys of the block that some query in vector v of the tile may see.
  int64_t seen(const QueryTile& tile, int v) const {
    const int64_t keys = tile.begin + (v + 1) * kLanes - begin;
    return keys < 0 ? 0 : keys < count ? keys : count;
  }
};

// to (keys, tile) = a · b for a row of a for each key and a column of b for each query, but for
// what whole vectors of queries do not see.
void score_product(const KeyBlock& block, const QueryTile& tile, int64_t depth, const LeftMatrix& a,
                   const float* b, float* to) {
  const int64_t all = tile.vecs > 1 ? block.seen(tile, 0) : block.count;
  product(all, depth, a, {b, tile.width}, tile.vecs, {to, tile.width, false});
  product(block.count - all, depth, rows_of(a.row(all), a.stride), {b + kLanes, tile.width}, 1,
          {to + all * tile.width + kLanes, tile.width, false});
}

// delta of the tile's queries from dout transposed (D, tile). Summed in the order in which dp is:
// where one key has all the weight, as for the first query, dp - delta is then exactly zero.
void sum_delta(float* delta, const float* douts, const float* outs, const QueryTile& tile,
               int64_t head_dim) {
  for (int v = 0; v < tile.vecs; ++v) {
    const int64_t left = tile.count - v * kLanes;
    FloatVec sum = {};
    for (int64_t d = 0; d < head_dim; ++d) {
      const int64_t at = d * tile.width + v * kLanes;
      sum = multiply_add(load(outs + at), load(douts + at), sum);
    }
    store_first(delta + tile.begin + v * kLanes, sum, left < kLanes ? left : int64_t{kLanes});
  }
}

// Products q·k become probabilities p, dscores scale * p * (dp - delta).
void differentiate_softmax(float* scores, float* dscores, const QueryTile& tile,
                           const KeyBlock& block, float scale, const float* lse,
                           const float* delta) {
  for (int v = 0; v < tile.vecs; ++v) {
    const int64_t left = tile.count - v * kLanes;
    const int64_t count = left < kLanes ? left : int64_t{kLanes};
    const FloatVec lses = load_first(lse + tile.begin + v * kLanes, count);
    const FloatVec deltas = load_first(delta + tile.begin + v * kLanes, count);
    const int64_t seen = block.seen(tile, v);
    for (int64_t j = seen; j < block.count; ++j) {
      store(scores + j * tile.width + v * kLanes, FloatVec{});
      store(dscores + j * tile.width + v * kLanes, FloatVec{});
    }
    for (int64_t j = 0; j < seen; ++j) {
      float* s = scores + j * tile.width + v * kLanes;
      float* ds = dscores + j * tile.width + v * kLanes;
      const FloatVec p = exponential(load(s) * scale - lses);
      store(s, p);
      store(ds, p * scale * (load(ds) - deltas));
    }
  }
}

// to (keys, D) (+)= pᵀ · x: p is (keys, tile), x the tile's rows in panels. Keys before the tile go
// on from what earlier tiles left; the tile's own start here, and see the queries from theirs on.
struct KeyGradient {
  const QueryTile& tile;
  const KeyBlock& block;
  int64_t head_dim;
  int64_t stride;
  float* edge;

  void rows(float* to, const float* p, const float* x, int64_t first, int64_t count, int64_t query,
            bool add) const {
    to += first * stride;
    p += first * tile.width + query;
    for (int64_t panel = 0; panel < head_dim; panel += kTileColumns) {
      const int64_t left = head_dim - panel;
      const int vecs = left > kLanes ? kTileVecs : 1;
      const int64_t width = vecs * kLanes;
      const float* from = x + query * width;
      const int64_t depth = tile.count - query;
      if (left >= width) {
        product(count, depth, rows_of(p, tile.width), {from, width}, vecs,
                {to + panel, stride, add});
      } else {
        product(count, depth, rows_of(p, tile.width), {from, width}, vecs, {edge, width, false});
        put_edge(to + panel, count, width, left, add);
      }
      x += width * tile.count;
    }
  }

  void put_edge(float* to, int64_t count, int64_t width, int64_t columns, bool add) const {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t d = 0; d < columns; d += kLanes) {
        const int64_t lanes = columns - d < kLanes ? columns - d : int64_t{kLanes};
        FloatVec value = load(edge + i * width + d);
        if (add) {
          value += load_first(to + i * stride + d, lanes);
        }
        store_first(to + i * stride + d, value, lanes);
      }
    }
  }

  void operator()(float* to, const float* p, const float* x) const {
    const int64_t before = tile.begin - block.begin;  // keys that precede the tile
    const int64_t old = before < 0 ? 0 : before < block.count ? before : block.count;
    if (old > 0) {
      rows(to, p, x, 0, old, 0, true);
    }
    for (int64_t first = old; first < block.count; first += kTileRows) {
      const int64_t left = block.count - first;
      rows(to, p, x, first, left < kTileRows ? left : int64_t{kTileRows}, first - before, false);
    }
  }
};

}  // namespace

void attention_backward_tile(const AttentionHeadBackward& args, int64_t index, int64_t first_key,
                             int64_t last_key, bool with_dq, bool with_dkv, float* scratch) {
  const AttentionHead& head = args.head;
  const int64_t stride = 3 * head.channels;
  const int64_t head_dim = head.head_dim;
  const QueryTile tile(head, index, kBackwardQueries);
  const BackwardScratch at(head_dim, scratch);
  const float* dout = args.dout + tile.begin * head.channels;
  pack_queries(at.forward.queries, head, tile);
  pack_b(at.douts, dout, 1, head.channels, head_dim, tile.count);
  if (with_dq) {
    pack_b(at.forward.transposed, args.out + tile.begin * head.channels, 1, head.channels, head_dim,
           tile.count);
    sum_delta(args.delta, at.douts, at.forward.transposed, tile, head_dim);
  }
  if (with_dkv) {
    pack_b(at.dout_rows, dout, head.channels, 1, tile.count, head_dim);
    pack_b(at.query_rows, head.q + tile.begin * stride, stride, 1, tile.count, head_dim);
  }
  const int64_t end = last_key < tile.end() ? last_key : tile.end();
  for (int64_t key = first_key; key < end; key += kKeyBlock) {
    const KeyBlock block = {key, end - key < kKeyBlock ? end - key : kKeyBlock};
    const float* k = head.k + key * stride;
    score_product(block, tile, head_dim, rows_of(k, stride), at.forward.queries, at.forward.scores);
    score_product(block, tile, head_dim, rows_of(head.v + key * stride, stride), at.douts,
                  at.dscores);
    mask_future(at.forward.scores, tile, key, block.count, -__builtin_inff());
    differentiate_softmax(at.forward.scores, at.dscores, tile, block, scale_of(head), args.lse,
                          args.delta);
    if (with_dkv) {
      const KeyGradient add_to = {tile, block, head_dim, stride, at.edge};
      add_to(args.dv + key * stride, at.forward.scores, at.dout_rows);
      add_to(args.dk + key * stride, at.dscores, at.query_rows);
    }
    if (with_dq) {
      product(head_dim, block.count, columns_of(k, stride), {at.dscores, tile.width}, tile.vecs,
              {at.forward.sums, tile.width, key > 0});
    }
  }
  if (with_dq) {
    store_transposed(args.dq + tile.begin * stride, stride, at.forward.sums, tile, head_dim,
                     at.forward.transposed);
  }
}

}  // namespace lockstep::LOCKSTEP_ISA
