#pragma once

// The gradients of queries, by tiles: a block has queries and walks the keys up to its last.

#include <cmath>

#include "kernels/cuda/attention/attention_products.cuh"
#include "kernels/cuda/attention/flash_backward_shape.cuh"
#include "kernels/cuda/attention/head_tile.cuh"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/key_ring.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/cuda/ptx/exp2.cuh"

namespace lockstep::cuda {

/// What is known of a lane's queries. Those behind the last have no probabilities.
template <AttentionProducts Products>
struct QueryRows {
  float delta[Products::kRows];
  float lse2[Products::kRows];  ///< times log2(e)

  __device__ QueryRows(const FlashBackward& args, int head, int first_query) {
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
      const int query = first_query + Products::row(i);
      const int64_t at = static_cast<int64_t>(head) * args.heads.time + query;
      const bool exists = query < args.heads.time;
      delta[i] = exists ? args.delta[at] : 0;
      lse2[i] = exists ? args.lse[at] * kLog2E : INFINITY;
    }
  }

  /// Scores become their gradient; dp: of the probabilities.
  __device__ void differentiate(typename Products::Scores& s, const typename Products::Scores& dp,
                                float scale2) const {
#pragma unroll
    for (int i = 0; i < Products::kRows; ++i) {
#pragma unroll
      for (int j = 0; j < Products::kColumns; ++j) {
        const float p = exp2_approx(fmaf(s[i][j], scale2, -lse2[i]));
        s[i][j] = p * (dp[i][j] - delta[i]);
      }
    }
  }
};

/// Writes a warp's rows, whose first is `first_query`. stride: between positions in (B, T, 3 C).
template <AttentionProducts Products>
__device__ void store_dq(const FlashBackward& args, typename Products::Sums& dq, int head,
                         int first_query, int64_t stride) {
  const Heads& heads = args.heads;
#pragma unroll
  for (int i = 0; i < Products::kRows; ++i) {
    const int query = first_query + Products::row(i);
    if (query < heads.time) {
      Products::scale_row(dq, i, args.scale);
      store_row<Products>(dq, i, args.dqkv + heads.packed_offset(head) + query * stride, heads);
    }
  }
}

/// dq of the `tile`-th kOwn queries of a head.
template <class Shape>
__device__ void sum_dq(const FlashBackward& args, float* shared, int head, int tile) {
  using Products = typename Shape::Products;
  using Key = typename Products::Key;
  constexpr int kHeadDim = Products::kHeadDim;
  constexpr int kKeys = Shape::kOthers;
  using Ring = KeyRing<Products, Shape::kThreads>;
  float* const q_tile = shared;
  float* const dout_tile = q_tile + Shape::kOwnFloats;
  float* const ring_memory = dout_tile + Shape::kOwnFloats;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* const scratch = ring_memory + Ring::kFloats + warp * Products::kScratchFloats;

  const Heads& heads = args.heads;
  const int q0 = tile * Shape::kOwn;
  const int first_query = q0 + warp * Products::kTileRows;
  const int64_t stride = heads.packed_stride();
  const float* q = args.qkv + heads.packed_offset(head);
  const int keys = min(q0 + Shape::kOwn, heads.time);

  const HeadTile<Key, kHeadDim, Shape::kOwn, Shape::kThreads> query_tile(heads, stride);
  const HeadTile<Key, kHeadDim, Shape::kOwn, Shape::kThreads> dout_rows(heads, heads.stride());
  const Ring ring(ring_memory, heads, stride, q);
  query_tile.fill(q_tile, q + q0 * stride, heads.time - q0);
  dout_rows.fill(dout_tile, args.dout + heads.offset(head) + q0 * heads.stride(), heads.time - q0);
  commit_copies();
  ring.fill(0, 0);
  commit_copies();
  const QueryRows<Products> rows(args, head, first_query);
  wait_copies<1>();
  __syncthreads();
  const int own = warp * Products::kTileRows * kHeadDim;
  const typename Products::Left q_left(q_tile + own);
  const typename Products::Left dout_left(dout_tile + own);

  const float scale2 = args.scale * kLog2E;
  typename Products::Sums dq = {};
  int slot = 0;
  for (int key = 0; key < keys; key += kKeys) {
    wait_copies<0>();
    __syncthreads();
    if (key + kKeys < keys) {
      ring.fill(slot ^ 1, key + kKeys);
      commit_copies();
    }
    if (key < first_query + Products::kTileRows) {
      typename Products::Scores s;
      typename Products::Scores dp;
      Products::scores(s, q_left, ring.keys(slot));
      Products::scores(dp, dout_left, ring.values(slot));
      if (key + kKeys > first_query + 1) {
        mask<Products>(s, [&](int row, int column) { return key + column > first_query + row; });
      }
      rows.differentiate(s, dp, scale2);
      Products::accumulate(dq, s, ring.keys(slot), scratch);
    }
    slot ^= 1;
  }
  store_dq<Products>(args, dq, head, first_query, stride);
}

}  // namespace lockstep::cuda
