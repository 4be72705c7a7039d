#pragma once

// The loop along k of the fp32 kernels.

#include "kernels/cuda/gemm/staged_tile.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/layout/tile_shape.h"

namespace lockstep::cuda {

/// Walks `tiles` tiles along k, Shape::kStages - 1 of them on their way. `compute` holds two slots
/// of fragments: load<slot>(a_tile, b_tile, step) fetches one step's from shared memory,
/// multiply<slot>() uses them. The next step's fragments are always fetched before this step's
/// products, across tiles too, so that neither the latency of shared memory nor the barrier is
/// waited for by the arithmetic. One barrier a tile: it publishes the copies of all threads, and
/// frees the buffer whose last fragments were fetched before it. That buffer is filled again at
/// once: the branch around the copies also keeps the compiler from moving the fetch behind the
/// products that are to cover it.
template <class Shape, class AStager, class BStager, class Compute>
__device__ void run_simt_pipeline(float* shared, AStager a, BStager b, int tiles,
                                  Compute& compute) {
  constexpr int kSteps = Compute::kSteps;
  static_assert(kSteps % 2 == 0, "a tile starts in slot 0");
  auto fill = [&](int tile) {
    if (tile < tiles) {
      const uint32_t to = shared_address(shared + tile % Shape::kStages * Shape::kStageFloats);
      a.fill(to);
      b.fill(to + AStager::kBytes);
    }
    commit_copies();
  };

#pragma unroll
  for (int tile = 0; tile < Shape::kStages; ++tile) {
    fill(tile);
  }
  wait_copies<Shape::kStages - 1>();
  __syncthreads();
  const float* current = shared;
  compute.template load<0>(current, current + AStager::kBytes / 4, 0);
  int next_stage = 1;
  for (int tile = 0; tile < tiles; ++tile) {
    const float* next = shared + next_stage * Shape::kStageFloats;
    next_stage = next_stage + 1 == Shape::kStages ? 0 : next_stage + 1;
#pragma unroll
    for (int step = 0; step < kSteps; step += 2) {
      compute.template load<1>(current, current + AStager::kBytes / 4, step + 1);
      compute.template multiply<0>();
      if (step + 2 == kSteps) {
        wait_copies<Shape::kStages - 2>();
        __syncthreads();
        current = next;
      }
      compute.template load<0>(current, current + AStager::kBytes / 4, (step + 2) % kSteps);
      if (step + 2 == kSteps) {
        fill(tile + Shape::kStages);
      }
      compute.template multiply<1>();
    }
  }
  wait_copies<0>();
}

}  // namespace lockstep::cuda
