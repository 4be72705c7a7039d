#pragma once

// How tiles get from the thread that has them filled to the warps that multiply them.

#include <cstdint>

#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/cuda/ptx/tensor_copy.cuh"
#include "kernels/layout/warpgroup.h"

namespace lockstep::cuda {

/// A ring of stages in shared memory, each a tile of a over a tile of b, with a barrier that says
/// full and one that says empty. Where the shape splits factors there is a third tile, for what
/// truncation leaves of b's, and a barrier that says it has been written.
template <class Shape>
struct StagePipeline {
  static constexpr int kABytes = Shape::kBlockM * layout::kWarpgroupDepth * 4;
  static constexpr int kBBytes = Shape::kBlockN * layout::kWarpgroupDepth * 4;
  static constexpr int kStageBytes = Shape::kStageFloats * 4;
  static constexpr int kBarriers = (Shape::kSplit ? 3 : 2) * Shape::kStages;

  uint32_t tiles;     ///< addresses in shared memory
  uint32_t barriers;  ///< 8 bytes each: full ones, then empty ones, then those of splitting

  __device__ uint32_t a_tile(int stage) const { return tiles + stage * kStageBytes; }
  __device__ uint32_t b_tile(int stage) const { return a_tile(stage) + kABytes; }
  __device__ uint32_t b_rest(int stage) const { return b_tile(stage) + kBBytes; }
  __device__ uint32_t full(int stage) const { return barriers + stage * 8; }
  __device__ uint32_t empty(int stage) const { return full(Shape::kStages + stage); }
  __device__ uint32_t split(int stage) const { return full(2 * Shape::kStages + stage); }

  /// By one thread, before the block's threads meet.
  __device__ void init() const {
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      init_barrier(full(stage), 1);
      init_barrier(empty(stage), Shape::kReadingWarps);
      if constexpr (Shape::kSplit) {
        init_barrier(split(stage), layout::kSplittingWarps);
      }
    }
    publish_barriers();
  }

  /// A place in the ring, and which round it is in.
  struct Cursor {
    int stage = 0;
    int round = 0;  ///< modulo 2
    __device__ void advance() {
      if (++stage == Shape::kStages) {
        stage = 0;
        round ^= 1;
      }
    }
    /// Past `tiles` stages that others read.
    __device__ void skip(int tiles) {
      const int to = stage + tiles;
      stage = to % Shape::kStages;
      round ^= to / Shape::kStages % 2;
    }
  };
  __device__ void wait_full(const Cursor& at) const { wait_barrier(full(at.stage), at.round); }
  __device__ void wait_split(const Cursor& at) const { wait_barrier(split(at.stage), at.round); }
  /// The first round finds everything empty.
  __device__ void wait_empty(const Cursor& at) const {
    wait_barrier(empty(at.stage), at.round ^ 1);
  }
  /// By every warp that multiplied a stage's tiles, when it reads them no more.
  __device__ void release(int stage) const {
    if (threadIdx.x % 32 == 0) {
      arrive(empty(stage));
    }
  }
};

}  // namespace lockstep::cuda
