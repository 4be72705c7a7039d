#pragma once

// The loop along k of the mma.sync kernels.

#include "kernels/cuda/gemm/staged_tile.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/layout/tile_shape.h"

namespace lockstep::cuda {

/// Walks `tiles` tiles along k; `shared` is where the block's memory begins. Product is a warp's
/// part of the work, see WarpProduct. In each step it takes the fragments that were loaded in the
/// step before, rounded or split, so that the next ones can be loaded into the same registers while
/// these are multiplied, across tiles too: neither the latency of shared memory nor the barrier is
/// waited for by the products.
///
/// One barrier a tile: it publishes the copies of all threads, and frees the buffer whose last
/// fragments were taken before it. That buffer is filled during the next tile, a few copies after
/// each row of products: in one go they would be waited for, first by the registers of their
/// addresses, then by the loads behind them.
template <class Shape, class AStager, class BStager, class Product>
__device__ void run_mma_pipeline(uint32_t shared, AStager a, BStager b, int tiles,
                                 Product& product) {
  constexpr int kSteps = Product::kSteps;
  constexpr int kStages = Shape::kStages;
  constexpr uint32_t kStageBytes = Shape::kStageFloats * 4;
  static_assert(kStages >= 3, "one tile is read, one filled, and one on its way");
  const uint32_t end = shared + Shape::kSharedBytes;
  const auto copy_some = [&a, &b](int row) {
    constexpr int kCopies = AStager::kPartCopies + BStager::kPartCopies;
#pragma unroll
    for (int i = row * kCopies / Product::kRows; i < (row + 1) * kCopies / Product::kRows; ++i) {
      if (i < AStager::kPartCopies) {
        a.copy(i);
      } else {
        b.copy(i - AStager::kPartCopies);
      }
    }
  };

#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    a.fill(shared + stage * kStageBytes);
    b.fill(shared + stage * kStageBytes + AStager::kBytes);
    commit_copies();
  }
  a.begin(end - kStageBytes);
  b.begin(end - kStageBytes + AStager::kBytes);
  wait_copies<kStages - 2>();
  __syncthreads();
  uint32_t current = shared;
  product.begin(current, current + AStager::kBytes);
  product.load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    const uint32_t next = current + kStageBytes == end ? shared : current + kStageBytes;
#pragma unroll Product::kUnroll
    for (int step = 0; step < kSteps; ++step) {
      product.take();
      if (step + 1 == kSteps) {
        wait_copies<kStages - 3>();
        __syncthreads();
        product.begin(next, next + AStager::kBytes);
      }
      product.load((step + 1) % kSteps);
      product.multiply(copy_some);
      a.next_part();
      b.next_part();
    }
    commit_copies();
    a.begin(current);
    b.begin(current + AStager::kBytes);
    current = next;
  }
  wait_copies<0>();
}

}  // namespace lockstep::cuda
