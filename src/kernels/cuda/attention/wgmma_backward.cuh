#pragma once

// The gradients of attention by wgmma, with the probabilities computed again from lse. As in
// flash_backward.cuh half of the blocks have queries, walk the keys and sum dq; the others have
// keys, walk the queries and sum dk and dv. Two warpgroups have 64 rows each.

#include "kernels/cuda/attention/wgmma_dkv.cuh"
#include "kernels/cuda/attention/wgmma_dq.cuh"
#include "kernels/cuda/ptx/registers.cuh"
#include "kernels/cuda/wgmma/warpgroups.cuh"

namespace lockstep::cuda {

/// A head's blocks are neighbours: those that run together find its tiles in the L2 cache. By turns
/// they have queries and keys, those that walk the furthest first: the last queries and the first
/// keys.
__global__ void __launch_bounds__(WgmmaAttentionShape::kThreads, 1)
    wgmma_backward_kernel(const __grid_constant__ WgmmaBackward args) {
  using Shape = WgmmaAttentionShape;
  extern __shared__ __align__(1024) float shared[];
  __shared__ __align__(8) uint64_t barriers[TilePipeline::kBarriers];
  const BackwardRing ring(shared, static_cast<uint32_t>(__cvta_generic_to_shared(barriers)));
  if (threadIdx.x == 0) {
    ring.tiles.init();
  }
  __syncthreads();
  const int tiles = args.heads.time / Shape::kOwn;
  const int head = static_cast<int>(blockIdx.x) / (2 * tiles);
  const int within = static_cast<int>(blockIdx.x) % (2 * tiles);
  const bool of_queries = within % 2 == 0;
  const int tile = of_queries ? tiles - 1 - within / 2 : within / 2;
  const int group = warpgroup_index();
  if (group == 2) {
    release_registers<Shape::kSupplyRegisters>();
    if (threadIdx.x == layout::kMultiplyingWarps * 32) {
      BackwardSupplier supplier(args, ring, head);
      if (of_queries) {
        supplier.supply_dq(tile);
      } else {
        supplier.supply_dkv(tile);
      }
    }
    return;
  }
  claim_registers<Shape::kRegisters>();
  if (of_queries) {
    sum_dq(args, ring, head, tile, group);
  } else {
    sum_dkv(args, ring, head, tile, group);
  }
}

}  // namespace lockstep::cuda
