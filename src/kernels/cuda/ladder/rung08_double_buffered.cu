// Rung 8, double buffering: two tiles in shared memory and the next one on its way in registers.
//
// Rung 7 waits for every tile twice: for global memory to deliver it, and for the slowest warp to
// be done with it. Here the loads of the next tile are issued before the products of this one, land
// in registers behind them and go to the other buffer: the latency is covered and one barrier a
// tile is left, since nobody reads the buffer that is written.

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
__global__ void __launch_bounds__(WarpTile::kThreads, 2)
    double_buffered_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  __shared__ __align__(16) float a_tiles[2][kDepth][kPitch];
  __shared__ __align__(16) float b_tiles[2][kDepth][kPitch];
  const WarpTile tile;
  const int m0 = static_cast<int>(blockIdx.y) * WarpTile::kBlock;
  const int n0 = static_cast<int>(blockIdx.x) * WarpTile::kBlock;

  TileRegisters<WarpTile::kBlock, kDepth, WarpTile::kThreads, kA> a_share;
  TileRegisters<WarpTile::kBlock, kDepth, WarpTile::kThreads, kB> b_share;
  float sum[8][8] = {};
  a_share.load(a, m0, 0);
  b_share.load(b, n0, 0);
  a_share.store(a_tiles[0]);
  b_share.store(b_tiles[0]);
  __syncthreads();

  int buffer = 0;
  for (int k0 = 0; k0 < a.depth; k0 += kDepth) {
    const bool more = k0 + kDepth < a.depth;
    if (more) {
      a_share.load(a, m0, k0 + kDepth);
      b_share.load(b, n0, k0 + kDepth);
    }
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      tile.multiply(sum, a_tiles[buffer][k], b_tiles[buffer][k]);
    }
    if (more) {
      buffer ^= 1;
      a_share.store(a_tiles[buffer]);
      b_share.store(b_tiles[buffer]);
      __syncthreads();
    }
  }
  tile.store(c, m0, n0, sum);
}

struct DoubleBuffered {
  static constexpr int kTileM = WarpTile::kBlock;
  static constexpr int kTileN = WarpTile::kBlock;
  static constexpr int kThreads = WarpTile::kThreads;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &double_buffered_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_double_buffered() {
  return {8,
          "double buffered",
          "next tile loads behind this one's products",
          Precision::kFp32,
          &launch_rung<DoubleBuffered>,
          &rung_resources<DoubleBuffered>};
}

}  // namespace lockstep
