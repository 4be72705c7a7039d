#pragma once

// Attention by wgmma. As in flash_forward.cuh a block has queries of one head, 64 for each of two
// warpgroups, and walks the keys up to its last query. The scores of the next keys are computed
// before the values of these are summed, so that a softmax runs under those sums.

#include "kernels/cuda/attention/tile_products.cuh"
#include "kernels/cuda/attention/tile_softmax.cuh"
#include "kernels/cuda/ptx/exp2.cuh"
#include "kernels/cuda/ptx/registers.cuh"
#include "kernels/cuda/wgmma/warpgroups.cuh"

namespace lockstep::cuda {

struct WgmmaForward {
  CUtensorMap qkv;         ///< (B T, 3 C), boxes of 64 rows x 32
  CUtensorMap transposed;  ///< v: (heads * 64, T)
  Heads heads;
  float scale;
  float* out;
  float* lse;
};

/// Brings the queries of both warpgroups in one stage, then keys and values, a step in each.
__device__ inline void supply_forward(const WgmmaForward& args, const TilePipeline& ring, int head,
                                      int tile) {
  using Shape = WgmmaAttentionShape;
  const HeadPlace place(args.heads, head);
  const int q0 = tile * Shape::kOwn;
  TileSupplier supplier = {ring};
  uint32_t full = supplier.begin(2 * Shape::kTileBytes);
  copy_tile(supplier.a_tile(), &args.qkv, place.column, place.row + q0, full);
  copy_tile(supplier.b_tile(), &args.qkv, place.column, place.row + q0 + Shape::kStep, full);
  supplier.end();
  for (int key = 0; key < q0 + Shape::kOwn; key += Shape::kStep) {
    full = supplier.begin(2 * Shape::kTileBytes);
    copy_tile(supplier.a_tile(), &args.qkv, place.column + place.channels, place.row + key, full);
    copy_tile(supplier.b_tile(), &args.transposed, key, place.transposed, full);
    supplier.end();
  }
}

__device__ inline void scale_rows(TileSums& sums, const float (&factors)[2]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    sums[i] *= factors[i / 2 % 2];
  }
}

/// Waits for `out`, which is still being computed, and scales it to new maxima.
__device__ inline void finish_sums(TileSums& out, bool raised, const TileSoftmax& softmax) {
  warpgroup_wait<0>();
  warpgroup_fence_sums(out);
  if (raised) {
    scale_rows(out, softmax.correction);
  }
}

/// The scores of the first keys: no sums run beside them.
__device__ inline void compute_first_scores(TileSums& s, const HeldTile& q, const TileWalk& walk) {
  walk.wait();
  warpgroup_fence_sums(s);
  warpgroup_arrive();
  start_scores(s, q, walk.a_tile());
  warpgroup_commit();
  warpgroup_wait<0>();
  warpgroup_fence_sums(s);
}

/// Of a row's four lanes the first two write lse, each of one of their two rows.
__device__ inline void store_lse(const WgmmaForward& args, const TileSoftmax& softmax, int head,
                                 int first_query) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (const int half = lane % 4; half < 2) {
    args.lse[static_cast<int64_t>(head) * args.heads.time + first_query + tile_row() + half * 8] =
        (half == 0 ? softmax.max[0] : softmax.max[1]) * args.scale +
        logf(half == 0 ? softmax.sum[0] : softmax.sum[1]);
  }
}

/// A warpgroup's 64 queries.
__device__ inline void attend(const WgmmaForward& args, const TilePipeline& ring, int head,
                              int tile, int group) {
  using Shape = WgmmaAttentionShape;
  const Heads& heads = args.heads;
  const int first_query = tile * Shape::kOwn + group * Shape::kStep;
  const float scale2 = args.scale * kLog2E;
  TileWalk walk = {ring};
  HeldTile q;
  walk.wait();
  q.load(group == 0 ? walk.a_tile() : walk.b_tile());
  walk.leave();

  TileSums s;
  TileSums out = {};
  TileSoftmax softmax;
  compute_first_scores(s, q, walk);
  int before = -1;
  for (int key = 0; key < first_query; key += Shape::kStep) {
    const bool raised = softmax.take(s, scale2);
    const int stage = walk.at.stage;
    walk.at.advance();
    walk.wait();
    finish_sums(out, raised, softmax);
    if (before >= 0) {
      ring.release(before);
    }
    before = stage;
    ScoreFragments p;
    round_scores(p, s);
    warpgroup_fence_sums(s);
    warpgroup_fence_sums(out);
    warpgroup_arrive();
    start_scores(s, q, walk.a_tile());
    warpgroup_commit();
    start_sums(out, p, ring.b_tile(stage));
    warpgroup_commit();
    warpgroup_wait<1>();
    warpgroup_fence_sums(s);
  }
  mask_scores(s, [](int query, int key) { return key > query; });
  const bool raised = softmax.take(s, scale2);
  finish_sums(out, raised, softmax);
  if (before >= 0) {
    ring.release(before);
  }
  ScoreFragments p;
  round_scores(p, s);
  warpgroup_fence_sums(out);
  warpgroup_arrive();
  start_sums(out, p, walk.b_tile());
  warpgroup_commit();
  warpgroup_wait<0>();
  warpgroup_fence_sums(out);
  walk.leave();
  walk.skip(1 - group);  // the other warpgroup's last keys

  softmax.combine();
  store_tile(out, {1.0F / softmax.sum[0], 1.0F / softmax.sum[1]},
             args.out + heads.offset(head) + first_query * heads.stride(), heads.stride());
  store_lse(args, softmax, head, first_query);
}

/// A head's blocks are neighbours: those that run together find its tiles in the L2 cache. The
/// longest rows come first.
__global__ void __launch_bounds__(WgmmaAttentionShape::kThreads, 1)
    wgmma_forward_kernel(const __grid_constant__ WgmmaForward args) {
  using Shape = WgmmaAttentionShape;
  extern __shared__ __align__(1024) float shared[];
  __shared__ __align__(8) uint64_t barriers[TilePipeline::kBarriers];
  const TilePipeline ring = {shared_address(shared),
                             static_cast<uint32_t>(__cvta_generic_to_shared(barriers))};
  if (threadIdx.x == 0) {
    ring.init();
  }
  __syncthreads();
  const int tiles = args.heads.time / Shape::kOwn;
  const int head = static_cast<int>(blockIdx.x) / tiles;
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x) % tiles;
  const int group = warpgroup_index();
  if (group == 2) {
    release_registers<Shape::kSupplyRegisters>();
    if (threadIdx.x == layout::kMultiplyingWarps * 32) {
      supply_forward(args, ring, head, tile);
    }
    return;
  }
  claim_registers<Shape::kRegisters>();
  attend(args, ring, head, tile, group);
}

}  // namespace lockstep::cuda
