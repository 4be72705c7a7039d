#pragma once

// The gradients of queries, by wgmma.

#include "kernels/cuda/attention/wgmma_backward_walk.cuh"
#include "kernels/cuda/ptx/exp2.cuh"

namespace lockstep::cuda {

/// A warpgroup's 64 queries.
__device__ inline void sum_dq(const WgmmaBackward& args, const BackwardRing& ring, int head,
                              int tile, int group) {
  using Shape = WgmmaAttentionShape;
  const Heads& heads = args.heads;
  const int row = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + threadIdx.x % 32 / 4;
  const int first_query = tile * Shape::kOwn + group * Shape::kStep;
  const int64_t row0 = static_cast<int64_t>(head) * heads.time + first_query + row;
  const float lse2[2] = {args.lse[row0] * kLog2E, args.lse[row0 + 8] * kLog2E};
  const float delta[2] = {args.delta[row0], args.delta[row0 + 8]};
  const float scale2 = args.scale * kLog2E;
  TileWalk walk = {ring.tiles};
  const KeptTiles kept(walk, group);  // q, dout
  TileSums dq = {};
  for (int key = 0; key <= first_query; key += Shape::kStep) {
    TileSums s;
    TileSums dp;
    compute_scores(s, dp, walk, kept);
    if (key == first_query) {
      mask_scores(s, [](int query, int key_column) { return key_column > query; });
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const int half = i / 2 % 2;
      const float p = exp2_approx(fmaf(s[i], scale2, -lse2[half]));
      dp[i] = p * (dp[i] - delta[half]);
    }
    ScoreFragments ds;
    round_scores(ds, dp);
    walk.wait();
    warpgroup_fence_sums(dq);
    warpgroup_arrive();
    start_sums(dq, ds, walk.a_tile());
    warpgroup_commit();
    warpgroup_wait<0>();
    warpgroup_fence_sums(dq);
    walk.leave();
  }
  walk.skip(2 * (1 - group));  // the other warpgroup's last keys
  store_tile(dq, {args.scale, args.scale},
             args.dqkv + heads.packed_offset(head) + first_query * heads.packed_stride(),
             heads.packed_stride());
}

}  // namespace lockstep::cuda
