// Rung 1, naive: one thread per element of C, threadIdx.x along the rows.
//
// The natural transcription of the triple loop, and the worst mapping there is: the 32 lanes of a
// warp read 32 rows of A that lie a whole row apart, so that one load instruction becomes 32 memory
// transactions, and they write C the same way. Each multiply-add reads 8 bytes: 0.25 FLOP per byte.

#include "kernels/cuda/ladder/launch.cuh"
#include "kernels/cuda/ladder/rungs.h"

namespace lockstep {
namespace {

using namespace cuda;

constexpr int kTile = 32;

template <Major kA, Major kB>
__global__ void naive_kernel(Operand<kA> a, Operand<kB> b, Output c) {
  const int row = static_cast<int>(blockIdx.y) * kTile + static_cast<int>(threadIdx.x) % kTile;
  const int column = static_cast<int>(blockIdx.x) * kTile + static_cast<int>(threadIdx.x) / kTile;
  if (row >= c.m || column >= c.n) {
    return;
  }
  float sum = 0.0F;
  for (int k = 0; k < a.depth; ++k) {
    sum += *a.address(row, k) * *b.address(column, k);
  }
  c.store(row, column, sum);
}

struct Naive {
  static constexpr int kTileM = kTile;
  static constexpr int kTileN = kTile;
  static constexpr int kThreads = kTile * kTile;
  static constexpr int kSharedBytes = 0;
  template <Major kA, Major kB>
  static auto* entry(bool /*vectorized*/) {
    return &naive_kernel<kA, kB>;
  }
};

}  // namespace

Rung rung_naive() {
  return {1,
          "naive",
          "one thread per element, rows along threadIdx.x",
          Precision::kFp32,
          &launch_rung<Naive>,
          &rung_resources<Naive>};
}

}  // namespace lockstep
