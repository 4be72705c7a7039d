#pragma once

// How tiles get from the thread that has them filled to the warpgroups that multiply them.

#include <cstdint>

#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/cuda/ptx/tensor_copy.cuh"
#include "kernels/layout/warpgroup.h"

namespace lockstep::cuda {

/// A ring of stages in shared memory, each a tile of a over a tile of b, with a barrier that says
/// full and one that says empty.
template <class Shape>
struct WgmmaPipeline {
  static constexpr int kAFloats = Shape::kBlockM * layout::kWarpgroupDepth;
  static constexpr int kBFloats = Shape::kBlockN * layout::kWarpgroupDepth;
  static constexpr int kStageBytes = (kAFloats + kBFloats) * 4;

  uint32_t tiles;     ///< addresses in shared memory
  uint32_t barriers;  ///< 8 bytes each: full ones, then empty ones

  __device__ uint32_t a_tile(int stage) const { return tiles + stage * kStageBytes; }
  __device__ uint32_t b_tile(int stage) const { return a_tile(stage) + kAFloats * 4; }
  __device__ uint32_t full(int stage) const { return barriers + stage * 8; }
  __device__ uint32_t empty(int stage) const { return full(Shape::kStages + stage); }

  /// By one thread, before the block's threads meet.
  __device__ void init() const {
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      init_barrier(full(stage), 1);
      init_barrier(empty(stage), 2);  // both warpgroups
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
  };
  __device__ void wait_full(const Cursor& at) const { wait_barrier(full(at.stage), at.round); }
  /// The first round finds everything empty.
  __device__ void wait_empty(const Cursor& at) const {
    wait_barrier(empty(at.stage), at.round ^ 1);
  }
};

}  // namespace lockstep::cuda
