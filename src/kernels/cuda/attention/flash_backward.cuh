#pragma once

// The gradients of attention by tiles, with the probabilities computed again from lse. Half of the
// blocks have queries, walk the keys and sum dq; the others have keys, walk the queries and sum dk
// and dv. Seven products instead of five, but every sum is one lane's, in one order.

#include <cuda_runtime.h>

#include <cmath>

#include "kernels/cuda/attention/attention_products.cuh"
#include "kernels/cuda/attention/flash_forward.cuh"
#include "kernels/cuda/attention/head_tile.cuh"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/key_ring.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/cuda/ptx/exp2.cuh"

namespace lockstep::cuda {

/// What a block and a warp of either half take on: kOwn rows of two matrices that it keeps,
/// kOthers rows of two more at a time.
template <AttentionProducts Products_, int kWarps_, int kResident_>
struct BackwardShape {
  using Products = Products_;
  static constexpr int kWarps = kWarps_;
  static constexpr int kThreads = 32 * kWarps_;
  static constexpr int kResident = kResident_;
  static constexpr int kOwn = kWarps_ * Products::kTileRows;
  static constexpr int kOthers = Products::kTileColumns;
  static constexpr int kOwnFloats = kOwn * Products::kHeadDim;
  static constexpr int kTileFloats = kOthers * Products::kHeadDim;
  static constexpr int kRowFloats = 4 * kOthers;  ///< lse and delta of two tiles of queries
  static constexpr int kSharedBytes =
      4 * (2 * kOwnFloats + 4 * kTileFloats + kWarps_ * Products::kScratchFloats + kRowFloats);
};

struct FlashBackward {
  Heads heads;
  float scale;
  float* dqkv;
  const float* delta;
  const float* dout;
  const float* lse;
  const float* qkv;
};

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
  float delta[Products::kRows];
  float lse2[Products::kRows];
#pragma unroll
  for (int i = 0; i < Products::kRows; ++i) {
    const int query = first_query + Products::row(i);
    const int64_t at = static_cast<int64_t>(head) * heads.time + query;
    const bool exists = query < heads.time;
    delta[i] = exists ? args.delta[at] : 0;
    lse2[i] = exists ? args.lse[at] * kLog2E : INFINITY;
  }
  wait_copies<1>();
  __syncthreads();
  const int own = warp * Products::kTileRows * kHeadDim;
  const typename Products::Left q_left(q_tile + own);
  const typename Products::Left dout_left(dout_tile + own);

  const float scale2 = args.scale * kLog2E;
  typename Products::Sums sums = {};
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
#pragma unroll
      for (int i = 0; i < Products::kRows; ++i) {
#pragma unroll
        for (int j = 0; j < Products::kColumns; ++j) {
          const float p = exp2_approx(fmaf(s[i][j], scale2, -lse2[i]));
          s[i][j] = p * (dp[i][j] - delta[i]);
        }
      }
      Products::accumulate(sums, s, ring.keys(slot), scratch);
    }
    slot ^= 1;
  }

#pragma unroll
  for (int i = 0; i < Products::kRows; ++i) {
    const int query = first_query + Products::row(i);
    if (query < heads.time) {
      Products::scale_row(sums, i, args.scale);
      float* dq = args.dqkv + heads.packed_offset(head) + query * stride;
      Products::for_each4(sums, i, [&](int d, float4 value) { store_row4(dq, d, value, heads); });
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
  float* const k_tile = shared;
  float* const v_tile = k_tile + Shape::kOwnFloats;
  float* const ring = v_tile + Shape::kOwnFloats;  // q, dout; q, dout
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* const scratch = ring + 4 * Shape::kTileFloats + warp * Products::kScratchFloats;
  float* const rows =  // lse, delta; lse, delta
      ring + 4 * Shape::kTileFloats + Shape::kWarps * Products::kScratchFloats;

  const Heads& heads = args.heads;
  const int k0 = tile * Shape::kOwn;
  const int first_key = k0 + warp * Products::kTileRows;
  const int64_t stride = heads.packed_stride();
  const float* q = args.qkv + heads.packed_offset(head);
  const float* k = q + heads.channels();
  const float* v = k + heads.channels();
  const float* dout = args.dout + heads.offset(head);
  const int64_t row0 = static_cast<int64_t>(head) * heads.time;

  const HeadTile<Key, kHeadDim, Shape::kOwn, Shape::kThreads> key_tile(heads, stride);
  const HeadTile<Key, kHeadDim, kQueries, Shape::kThreads> query_rows(heads, stride);
  const HeadTile<Key, kHeadDim, kQueries, Shape::kThreads> dout_rows(heads, heads.stride());
  const auto fill_queries = [&](int slot, int query) {
    float* to = ring + slot * 2 * Shape::kTileFloats;
    query_rows.fill(to, q + query * stride, heads.time - query);
    dout_rows.fill(to + Shape::kTileFloats, dout + query * heads.stride(), heads.time - query);
    // Behind the last query there are zeros: neither they nor what is done with them matters.
    for (int i = static_cast<int>(threadIdx.x); i < 2 * kQueries; i += Shape::kThreads) {
      const int position = query + i % kQueries;
      const float* from = i < kQueries ? args.lse : args.delta;
      copy4_async(shared_address(rows + slot * 2 * kQueries + i), from + row0 + position,
                  position < heads.time ? 4 : 0);
    }
  };
  key_tile.fill(k_tile, k + k0 * stride, heads.time - k0);
  key_tile.fill(v_tile, v + k0 * stride, heads.time - k0);
  commit_copies();
  const int start = k0 / kQueries * kQueries;
  fill_queries(0, start);
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
      fill_queries(slot ^ 1, query + kQueries);
      commit_copies();
    }
    if (query + kQueries > first_key) {
      const float* q_tile = ring + slot * 2 * Shape::kTileFloats;
      const float* dout_tile = q_tile + Shape::kTileFloats;
      const float* lse = rows + slot * 2 * kQueries;
      const float* delta = lse + kQueries;
      typename Products::Scores p;
      Products::scores(p, k_left, q_tile);
      if (query < first_key + Products::kTileRows - 1) {
        mask<Products>(p, [&](int row, int column) { return first_key + row > query + column; });
      }
#pragma unroll
      for (int j = 0; j < Products::kColumns; ++j) {
        const float lse2 = lse[Products::column(j)] * kLog2E;
#pragma unroll
        for (int i = 0; i < Products::kRows; ++i) {
          p[i][j] = exp2_approx(fmaf(p[i][j], scale2, -lse2));
        }
      }
      Products::accumulate(dv, p, dout_tile, scratch);
      typename Products::Scores dp;
      Products::scores(dp, v_left, dout_tile);
#pragma unroll
      for (int j = 0; j < Products::kColumns; ++j) {
        const float row_delta = delta[Products::column(j)];
#pragma unroll
        for (int i = 0; i < Products::kRows; ++i) {
          p[i][j] *= dp[i][j] - row_delta;
        }
      }
      Products::accumulate(dk, p, q_tile, scratch);
    }
    slot ^= 1;
  }

#pragma unroll
  for (int i = 0; i < Products::kRows; ++i) {
    const int key = first_key + Products::row(i);
    if (key < heads.time) {
      Products::scale_row(dk, i, args.scale);
      float* to = args.dqkv + heads.packed_offset(head) + heads.channels() + key * stride;
      Products::for_each4(dk, i, [&](int d, float4 value) { store_row4(to, d, value, heads); });
      to += heads.channels();
      Products::for_each4(dv, i, [&](int d, float4 value) { store_row4(to, d, value, heads); });
    }
  }
}

/// How the blocks of a head are shared out: by turns, one block of queries and as many of keys as
/// it is times as large.
template <class DqShape, class DkvShape>
struct BackwardTurns {
  static constexpr int kKeyBlocks = DqShape::kOwn / DkvShape::kOwn;
  static constexpr int kBlocks = 1 + kKeyBlocks;
  static_assert(DqShape::kOwn % DkvShape::kOwn == 0);
  static_assert(DqShape::kThreads == DkvShape::kThreads);
  static constexpr int kSharedBytes = DqShape::kSharedBytes > DkvShape::kSharedBytes
                                          ? DqShape::kSharedBytes
                                          : DkvShape::kSharedBytes;
  static __host__ __device__ int count(int time) {
    return (time + DqShape::kOwn - 1) / DqShape::kOwn;
  }
};

/// Those that walk the furthest start first: the last queries and the first keys.
template <class DqShape, class DkvShape>
__global__ void __launch_bounds__(DqShape::kThreads, DqShape::kResident)
    flash_backward_kernel(FlashBackward args) {
  using Turns = BackwardTurns<DqShape, DkvShape>;
  extern __shared__ __align__(128) float shared[];
  const int head = static_cast<int>(blockIdx.x);
  const int turn = static_cast<int>(blockIdx.y) / Turns::kBlocks;
  const int part = static_cast<int>(blockIdx.y) % Turns::kBlocks;
  if (part == 0) {
    sum_dq<DqShape>(args, shared, head, Turns::count(args.heads.time) - 1 - turn);
  } else {
    const int tile = turn * Turns::kKeyBlocks + part - 1;
    if (tile * DkvShape::kOwn < args.heads.time) {
      sum_dkv<DkvShape>(args, shared, head, tile);
    }
  }
}

}  // namespace lockstep::cuda
