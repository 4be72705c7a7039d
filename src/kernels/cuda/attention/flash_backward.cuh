#pragma once

// The gradients of attention by tiles, with the probabilities computed again from lse. Half of the
// blocks have queries, walk the keys and sum dq; the others have keys, walk the queries and sum dk
// and dv. Seven products instead of five, but every sum is one lane's, in one order.

#include <cuda_runtime.h>

#include "kernels/cuda/attention/flash_backward_shape.cuh"
#include "kernels/cuda/attention/flash_dkv.cuh"
#include "kernels/cuda/attention/flash_dq.cuh"

namespace lockstep::cuda {

/// How the blocks of a head are shared out: by turns, one block of queries and as many of keys as
/// it is times as large.
template <class DqShape, class DkvShape>
struct BackwardTurns {
  static constexpr int kKeyBlocks = DqShape::kOwn / DkvShape::kOwn;
  static constexpr int kBlocks = 1 + kKeyBlocks;
  static_assert(DqShape::kOwn % DkvShape::kOwn == 0);
  static_assert(DqShape::kThreads == DkvShape::kThreads);
  static constexpr int kSharedBytes = DqShape::kSharedBytes > DkvShape::kSharedBytes
                                          ? DqShape::kSharedBytes
                                          : DkvShape::kSharedBytes;
  static __host__ __device__ int count(int time) {
    return (time + DqShape::kOwn - 1) / DqShape::kOwn;
  }
};

/// Those that walk the furthest start first: the last queries and the first keys.
template <class DqShape, class DkvShape>
__global__ void __launch_bounds__(DqShape::kThreads, DqShape::kResident)
    flash_backward_kernel(FlashBackward args) {
  using Turns = BackwardTurns<DqShape, DkvShape>;
  extern __shared__ __align__(128) float shared[];
  const int head = static_cast<int>(blockIdx.x);
  const int turn = static_cast<int>(blockIdx.y) / Turns::kBlocks;
  const int part = static_cast<int>(blockIdx.y) % Turns::kBlocks;
  if (part == 0) {
    sum_dq<DqShape>(args, shared, head, Turns::count(args.heads.time) - 1 - turn);
  } else {
    const int tile = turn * Turns::kKeyBlocks + part - 1;
    if (tile * DkvShape::kOwn < args.heads.time) {
      sum_dkv<DkvShape>(args, shared, head, tile);
    }
  }
}

}  // namespace lockstep::cuda
