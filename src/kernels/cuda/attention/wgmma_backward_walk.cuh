#pragma once

// What both warpgroups of attention's backward by wgmma do on their walk, whatever they sum.

#include "kernels/cuda/attention/tile_products.cuh"
#include "kernels/cuda/attention/wgmma_backward_supply.cuh"

namespace lockstep::cuda {

/// The two tiles that a warpgroup keeps. Each warpgroup's have a stage.
struct KeptTiles {
  HeldTile first;
  HeldTile second;

  __device__ KeptTiles(TileWalk& walk, int group) {
    walk.skip(group);
    walk.wait();
    first.load(walk.a_tile());
    second.load(walk.b_tile());
    walk.leave();
    walk.skip(1 - group);
  }
};

/// The scores of the first tiles and, dp, of the second ones.
__device__ inline void compute_scores(TileSums& s, TileSums& dp, TileWalk& walk,
                                      const KeptTiles& kept) {
  walk.wait();
  warpgroup_fence_sums(s);
  warpgroup_fence_sums(dp);
  warpgroup_arrive();
  start_scores(s, kept.first, walk.a_tile());
  start_scores(dp, kept.second, walk.b_tile());
  warpgroup_commit();
  warpgroup_wait<0>();
  warpgroup_fence_sums(s);
  warpgroup_fence_sums(dp);
  walk.leave();
}

}  // namespace lockstep::cuda
