// Rung 3, shared-memory tile: a block stages 32 x 32 tiles of A and B once and all its threads
// multiply from there.
//
// Each staged value serves 32 threads: global traffic falls by 32, to 8 FLOP per byte. What limits
// now is shared memory itself: every multiply-add still needs two loads from it.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"
#include "kernels/cuda/ladder/tile_load.cuh"

namespace lockstep {
namespace {

using namespace cuda;

constexpr int kTile = 32;
constexpr int kBlockThreads = kTile * kTile;
constexpr int kPitch =
    kTile + 1;  // a transposing store walks down a column: the odd pitch spreads it over the banks

template <Major kA, Major kB>
__global__ void shared_tile_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  __shared__ float a_tile[kTile][kPitch];
  __shared__ float b_tile[kTile][kPitch];
  const int row = static_cast<int>(threadIdx.x) / kTile;
  const int column = static_cast<int>(threadIdx.x) % kTile;
  const int m0 = static_cast<int>(blockIdx.y) * kTile;
  const int n0 = static_cast<int>(blockIdx.x) * kTile;

  float sum = 0.0F;
  for (int k0 = 0; k0 < a.depth; k0 += kTile) {
    load_tile<kTile, kTile, kBlockThreads>(a_tile, a, m0, k0);
    load_tile<kTile, kTile, kBlockThreads>(b_tile, b, n0, k0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      sum += a_tile[k][row] * b_tile[k][column];
    }
    __syncthreads();
  }
  c.store(m0 + row, n0 + column, sum);
}

struct SharedTile {
  static constexpr int kTileM = kTile;
  static constexpr int kTileN = kTile;
  static constexpr int kThreads = kBlockThreads;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &shared_tile_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_shared_tile() {
  return {3,
          "shared tile",
          "32 x 32 tiles staged in shared memory",
          Precision::kFp32,
          &launch_rung<SharedTile>,
          &rung_resources<SharedTile>};
}

}  // namespace lockstep
