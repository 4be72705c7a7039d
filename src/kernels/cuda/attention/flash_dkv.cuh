#pragma once

// The gradients of keys and values, by tiles: a block has keys and walks the queries from its
// first.

#include "kernels/cuda/attention/attention_products.cuh"
#include "kernels/cuda/attention/flash_backward_shape.cuh"
#include "kernels/cuda/attention/head_tile.cuh"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/query_ring.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/cuda/ptx/exp2.cuh"

namespace lockstep::cuda {

/// Scores of keys by queries become probabilities. lse: of the tile's queries.
template <AttentionProducts Products>
__device__ void weigh(typename Products::Scores& s, const float* lse, float scale2) {
#pragma unroll
  for (int j = 0; j < Products::kColumns; ++j) {
    const float lse2 = lse[Products::column(j)] * kLog2E;
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
      s[i][j] = exp2_approx(fmaf(s[i][j], scale2, -lse2));
    }
  }
}

/// Probabilities become the gradient of the scores; dp: of the probabilities.
template <AttentionProducts Products>
__device__ void differentiate(typename Products::Scores& p, const typename Products::Scores& dp,
                              const float* delta) {
#pragma unroll
  for (int j = 0; j < Products::kColumns; ++j) {
    const float row_delta = delta[Products::column(j)];
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
      p[i][j] *= dp[i][j] - row_delta;
    }
  }
}

/// Writes a warp's rows, whose first is `first_key`. stride: between positions in (B, T, 3 C).
template <AttentionProducts Products>
__device__ void store_dkv(const FlashBackward& args, typename Products::Sums& dk,
                          const typename Products::Sums& dv, int head, int first_key,
                          int64_t stride) {
  const Heads& heads = args.heads;
#pragma unroll
  for (int i = 0; i < Products::kRows; ++i) {
    const int key = first_key + Products::row(i);
    if (key < heads.time) {
      Products::scale_row(dk, i, args.scale);
      float* to = args.dqkv + heads.packed_offset(head) + heads.channels() + key * stride;
      store_row<Products>(dk, i, to, heads);
      store_row<Products>(dv, i, to + heads.channels(), heads);
    }
  }
}

/// dk and dv of the `tile`-th kOwn keys of a head. Scores are transposed: rows are keys.
template <class Shape>
__device__ void sum_dkv(const FlashBackward& args, float* shared, int head, int tile) {
  using Products = typename Shape::Products;
  using Key = typename Products::Key;
  constexpr int kHeadDim = Products::kHeadDim;
  constexpr int kQueries = Shape::kOthers;
  using Ring = QueryRing<Shape>;
  float* const k_tile = shared;
  float* const v_tile = k_tile + Shape::kOwnFloats;
  float* const ring_memory = v_tile + Shape::kOwnFloats;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* const scratch = ring_memory + Ring::kFloats + warp * Products::kScratchFloats;
  float* const rows = ring_memory + Ring::kFloats + Shape::kWarps * Products::kScratchFloats;

  const Heads& heads = args.heads;
  const int k0 = tile * Shape::kOwn;
  const int first_key = k0 + warp * Products::kTileRows;
  const int64_t stride = heads.packed_stride();
  const float* q = args.qkv + heads.packed_offset(head);
  const float* k = q + heads.channels();
  const float* v = k + heads.channels();

  const HeadTile<Key, kHeadDim, Shape::kOwn, Shape::kThreads> key_tile(heads, stride);
  const Ring ring(ring_memory, rows, args, head, stride, q);
  key_tile.fill(k_tile, k + k0 * stride, heads.time - k0);
  key_tile.fill(v_tile, v + k0 * stride, heads.time - k0);
  commit_copies();
  const int start = k0 / kQueries * kQueries;
  ring.fill(0, start);
  commit_copies();
  wait_copies<1>();
  __syncthreads();
  const int own = warp * Products::kTileRows * kHeadDim;
  const typename Products::Left k_left(k_tile + own);
  const typename Products::Left v_left(v_tile + own);

  const float scale2 = args.scale * kLog2E;
  typename Products::Sums dk = {};
  typename Products::Sums dv = {};
  int slot = 0;
  for (int query = start; query < heads.time; query += kQueries) {
    wait_copies<0>();
    __syncthreads();
    if (query + kQueries < heads.time) {
      ring.fill(slot ^ 1, query + kQueries);
      commit_copies();
    }
    if (query + kQueries > first_key) {
      const float* q_tile = ring.queries(slot);
      const float* dout_tile = ring.douts(slot);
      const float* lse = ring.lse(slot);
      const float* delta = ring.delta(slot);
      typename Products::Scores p;
      Products::scores(p, k_left, q_tile);
      if (query < first_key + Products::kTileRows - 1) {
        mask<Products>(p, [&](int row, int column) { return first_key + row > query + column; });
      }
      weigh<Products>(p, lse, scale2);
      Products::accumulate(dv, p, dout_tile, scratch);
      typename Products::Scores dp;
      Products::scores(dp, v_left, dout_tile);
      differentiate<Products>(p, dp, delta);
      Products::accumulate(dk, p, q_tile, scratch);
    }
    slot ^= 1;
  }
  store_dkv<Products>(args, dk, dv, head, first_key, stride);
}

}  // namespace lockstep::cuda
