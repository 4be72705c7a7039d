#pragma once

// The gradients of keys and values, by wgmma.

#include "kernels/cuda/attention/wgmma_backward_walk.cuh"
#include "kernels/cuda/ptx/exp2.cuh"

namespace lockstep::cuda {

/// Scores, of which columns are queries, become probabilities; dp their gradient. `rows` are lse
/// and delta.
__device__ inline void differentiate(TileSums& s, TileSums& dp, const float* rows, float scale2) {
  const float* const lse = rows + threadIdx.x % 4 * 2;
  const float* const delta = lse + WgmmaAttentionShape::kStep;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 column_lse = *reinterpret_cast<const float2*>(lse + 8 * j);
    const float2 column_delta = *reinterpret_cast<const float2*>(delta + 8 * j);
#pragma unroll
    for (int i = 4 * j; i < 4 * j + 4; ++i) {
      const float lse2 = (i % 2 == 0 ? column_lse.x : column_lse.y) * kLog2E;
      s[i] = exp2_approx(fmaf(s[i], scale2, -lse2));
      dp[i] = s[i] * (dp[i] - (i % 2 == 0 ? column_delta.x : column_delta.y));
    }
  }
}

/// A warpgroup's 64 keys. Scores are transposed: rows are keys.
__device__ inline void sum_dkv(const WgmmaBackward& args, const BackwardRing& ring, int head,
                               int tile, int group) {
  using Shape = WgmmaAttentionShape;
  const Heads& heads = args.heads;
  const int first_key = tile * Shape::kOwn + group * Shape::kStep;
  const float scale2 = args.scale * kLog2E;
  TileWalk walk = {ring.tiles};
  const KeptTiles kept(walk, group);  // k, v
  walk.skip(2 * group);               // the other warpgroup's first queries
  TileSums dk = {};
  TileSums dv = {};
  for (int query = first_key; query < heads.time; query += Shape::kStep) {
    TileSums s;
    TileSums dp;
    compute_scores(s, dp, walk, kept);
    if (query == first_key) {
      mask_scores(s, [](int key, int query_column) { return key > query_column; });
    }
    walk.wait();
    differentiate(s, dp, ring.rows_of(walk.at.stage), scale2);
    ScoreFragments p;
    ScoreFragments ds;
    round_scores(p, s);
    round_scores(ds, dp);
    warpgroup_fence_sums(dv);
    warpgroup_fence_sums(dk);
    warpgroup_arrive();
    start_sums(dv, p, walk.a_tile());
    start_sums(dk, ds, walk.b_tile());
    warpgroup_commit();
    warpgroup_wait<0>();
    warpgroup_fence_sums(dv);
    warpgroup_fence_sums(dk);
    walk.leave();
  }
  float* const to =
      args.dqkv + heads.packed_offset(head) + heads.channels() + first_key * heads.packed_stride();
  store_tile(dk, {args.scale, args.scale}, to, heads.packed_stride());
  store_tile(dv, {1, 1}, to + heads.channels(), heads.packed_stride());
}

}  // namespace lockstep::cuda
