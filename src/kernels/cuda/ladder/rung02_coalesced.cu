// Rung 2, coalesced: threadIdx.x along the columns.
//
// The same arithmetic with two indices exchanged. The lanes of a warp now write 32 neighbouring
// elements of C, share one element of A and, when B is stored as it stands, read 32 neighbouring
// elements of B: one 128-byte transaction in place of 32. Still 0.25 FLOP per byte asked for; the
// caches serve most of it.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"

namespace lockstep {
namespace {

using namespace cuda;

constexpr int kTile = 32;

template <Major kA, Major kB>
__global__ void coalesced_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  const int row = static_cast<int>(blockIdx.y) * kTile + static_cast<int>(threadIdx.x) / kTile;
  const int column = static_cast<int>(blockIdx.x) * kTile + static_cast<int>(threadIdx.x) % kTile;
  if (row >= c.m || column >= c.n) {
    return;
  }
  float sum = 0.0F;
  for (int k = 0; k < a.depth; ++k) {
    sum += *a.address(row, k) * *b.address(column, k);
  }
  c.store(row, column, sum);
}

struct Coalesced {
  static constexpr int kTileM = kTile;
  static constexpr int kTileN = kTile;
  static constexpr int kThreads = kTile * kTile;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &coalesced_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_coalesced() {
  return {2,
          "coalesced",
          "columns along threadIdx.x",
          Precision::kFp32,
          &launch_rung<Coalesced>,
          &rung_resources<Coalesced>};
}

}  // namespace lockstep
