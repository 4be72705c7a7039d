#pragma once

// Tiles of 64 tokens x 64 elements of a head, which one thread has the tensor memory accelerator
// bring to a ring in shared memory.

#include <cuda.h>

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/wgmma_attention.h"
#include "kernels/cuda/ptx/tensor_copy.cuh"
#include "kernels/cuda/tma/pipeline.cuh"

namespace lockstep::cuda {

/// A ring of stages of two tiles, each of 64 x 64 floats in two panels of 64 rows of 128 bytes.
struct TileStages {
  static constexpr int kBlockM = 128;
  static constexpr int kBlockN = 128;
  static constexpr int kStages = 6;
  static constexpr bool kSplit = false;
  static constexpr int kReadingWarps = layout::kMultiplyingWarps;
  static constexpr int kStageFloats = (kBlockM + kBlockN) * layout::kWarpgroupDepth;
};
using TilePipeline = StagePipeline<TileStages>;

struct WgmmaAttentionShape {
  static constexpr int kThreads = layout::kMultiplyingWarps * 32 + 128;
  // Of a thread that multiplies: fragments of two matrices, scores of two, sums of two.
  static constexpr int kRegisters = 240;
  static constexpr int kSupplyRegisters = 24;
  static_assert(2 * kRegisters + kSupplyRegisters <= 3 * 168, "what a block of 384 threads gets");
  static constexpr int kStep = 64;  ///< tokens that a warpgroup has, or walks at a time
  static constexpr int kOwn = 2 * kStep;
  static constexpr int kPanelBytes = kStep * layout::kWarpgroupDepth * 4;
  static constexpr int kTileBytes = 2 * kPanelBytes;
  static constexpr int kRingBytes = TileStages::kStages * TilePipeline::kStageBytes;
};

/// Starts the copy of 64 x 64 floats of a matrix, at (row, column).
__device__ inline void copy_tile(uint32_t to, const CUtensorMap* map, int column, int row,
                                 uint32_t barrier) {
  copy_box(to, map, column, row, barrier);
  copy_box(to + WgmmaAttentionShape::kPanelBytes, map, column + layout::kWarpgroupDepth, row,
           barrier);
}

/// Where a head is in the maps.
struct HeadPlace {
  int row;         ///< of its sequence's first token
  int column;      ///< of its elements, in (B T, C), and of its q in (B T, 3 C)
  int channels;    ///< from q to k, and to v
  int transposed;  ///< its first row in a matrix of transposed heads

  __device__ HeadPlace(const Heads& heads, int head)
      : row(head / heads.per_sequence * heads.time),
        column(head % heads.per_sequence * kWgmmaHeadDim),
        channels(heads.per_sequence * kWgmmaHeadDim),
        transposed(head * kWgmmaHeadDim) {}
};

/// One thread's way through the ring, filling it.
struct TileSupplier {
  const TilePipeline& pipeline;
  TilePipeline::Cursor at = {};

  /// Waits for the next stage to be empty, and announces what it gets; the barrier for that.
  __device__ uint32_t begin(int bytes) const {
    pipeline.wait_empty(at);
    const uint32_t full = pipeline.full(at.stage);
    arrive_expecting(full, bytes);
    return full;
  }
  __device__ uint32_t a_tile() const { return pipeline.a_tile(at.stage); }
  __device__ uint32_t b_tile() const { return pipeline.b_tile(at.stage); }
  __device__ void end() { at.advance(); }
};

/// A warpgroup's way through the ring.
struct TileWalk {
  const TilePipeline& pipeline;
  TilePipeline::Cursor at = {};

  __device__ void wait() const { pipeline.wait_full(at); }
  __device__ void leave() {
    pipeline.release(at.stage);
    at.advance();
  }
  __device__ void skip(int stages) {
    for (int i = 0; i < stages; ++i) {
      wait();
      leave();
    }
  }
  __device__ uint32_t a_tile() const { return pipeline.a_tile(at.stage); }
  __device__ uint32_t b_tile() const { return pipeline.b_tile(at.stage); }
};

}  // namespace lockstep::cuda
