// Rung 7, warp tile: one more level of blocking, between the block and the thread.
//
// Rung 6 lets the 32 lanes of a warp spread over two rows of thread tiles: they read 16 + 128
// distinct values for each k. Arranged 4 x 8 over a compact 32 x 64 warp tile they read 32 + 64,
// and the lanes' accesses fall into contiguous 16-byte pieces without bank conflicts: the traffic
// between shared memory and registers, which bounds rung 6, shrinks.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"
#include "kernels/cuda/ladder/tile_load.cuh"
#include "kernels/cuda/ladder/warp_tile.cuh"

namespace lockstep {
namespace {

using namespace cuda;

constexpr int kDepth = 8;
constexpr int kPitch = WarpTile::kBlock + 4;

template <Major kA, Major kB>
__global__ void __launch_bounds__(WarpTile::kThreads)
    warp_tile_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  __shared__ __align__(16) float a_tile[kDepth][kPitch];
  __shared__ __align__(16) float b_tile[kDepth][kPitch];
  const WarpTile tile;
  const int m0 = static_cast<int>(blockIdx.y) * WarpTile::kBlock;
  const int n0 = static_cast<int>(blockIdx.x) * WarpTile::kBlock;

  TileRegisters<WarpTile::kBlock, kDepth, WarpTile::kThreads, kA> a_share;
  TileRegisters<WarpTile::kBlock, kDepth, WarpTile::kThreads, kB> b_share;
  float sum[8][8] = {};
  for (int k0 = 0; k0 < a.depth; k0 += kDepth) {
    a_share.load(a, m0, k0);
    b_share.load(b, n0, k0);
    a_share.store(a_tile);
    b_share.store(b_tile);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      tile.multiply(sum, a_tile[k], b_tile[k]);
    }
    __syncthreads();
  }
  tile.store(c, m0, n0, sum);
}

struct WarpTiled {
  static constexpr int kTileM = WarpTile::kBlock;
  static constexpr int kTileN = WarpTile::kBlock;
  static constexpr int kThreads = WarpTile::kThreads;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &warp_tile_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_warp_tile() {
  return {7,
          "warp tile",
          "32 x 64 tile per warp, lanes 4 x 8",
          Precision::kFp32,
          &launch_rung<WarpTiled>,
          &rung_resources<WarpTiled>};
}

}  // namespace lockstep
