#pragma once

// wgmma of factors split in two TF32 values each: products as exact as those of single precision,
// on tensor cores.
//
// With x = x1 + x2, x1 of x's upper eleven bits, the product is a1 b1 + a1 b2 + a2 b1; a2 b2 is
// below what single precision resolves. Of b the tile itself serves as b1, because tensor cores
// drop the lower bits, and warps of their own write b2 beside it. Of a, each warp holds its rows in
// registers and splits them there: reading a1 and a2 from shared memory would take more of its
// bandwidth than there is. a1 is rounded to nearest: then a2 has either sign, and so has a2 b2, so
// that what is left out has no bias. b2 is rounded to nearest for the same reason.
//
// Tensor cores truncate their sums. Those of one tile of k begin at zero, the small products first,
// and are added to the running ones in single precision, rounded to nearest.
// (H. Ootomo, R. Yokota: Recovering single precision accuracy from Tensor Cores while surpassing
// the FP32 theoretical peak performance, 2022.)

#include "kernels/cuda/gemm/wgmma_operands.cuh"
#include "kernels/cuda/ptx/registers.cuh"
#include "kernels/cuda/ptx/shared.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/cuda/wgmma/rows.cuh"
#include "kernels/cuda/wgmma/warpgroups.cuh"
#include "kernels/layout/split.h"

namespace lockstep::cuda {

struct SplitFragments {
  RowFragments upper;
  RowFragments rest;

  __device__ explicit SplitFragments(const RowFragments& rows) {
#pragma unroll
    for (int step = 0; step < RowFragments::kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t bits = rows.steps[step].words[i];
        upper.steps[step].words[i] = layout::nearest_tf32(bits);
        rest.steps[step].words[i] = layout::rest_of(bits, layout::nearest_tf32(bits));
      }
    }
  }
};

template <class Shape_, Major kA_>
struct SplitProducts {
  using Shape = Shape_;
  static constexpr Major kA = kA_;
  using Pipeline = StagePipeline<Shape>;
  static constexpr int kThreads = layout::kMultiplyingWarps * 32 + 128;
  // Of a thread that multiplies: two sets of sums, and a's rows three times.
  static constexpr int kRegisters = 216;
  static constexpr int kSupplyRegisters = 72;
  static_assert(2 * kRegisters + kSupplyRegisters <= 3 * 168, "what a block of 384 threads gets");

  /// By the warpgroup that does not multiply: one thread has tiles brought, three warps write b's
  /// rests.
  static __device__ void supply(const Pipeline& pipeline, const WgmmaOperands& operands,
                                const WgmmaWork& work) {
    release_registers<kSupplyRegisters>();
    const int thread = static_cast<int>(threadIdx.x) - (kThreads - layout::kSplittingWarps * 32);
    if (thread >= 0) {
      split_tiles(pipeline, work.tiles, thread);
    } else if (threadIdx.x % 32 == 0) {
      typename Pipeline::Cursor at;
      fill_tiles<kA>(pipeline, at, operands, work);
    }
  }

  /// One warpgroup's products of `tiles` tiles, added to `sum`; to `sums`, the
  /// sums of its rows of a.
  static __device__ void multiply(const Pipeline& pipeline, int group, int tiles,
                                  float (&sum)[Shape::kBlockN / 2], RowSums& sums) {
    claim_registers<kRegisters>();
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (group == 1) {
      pass_turn(group);
    }
    typename Pipeline::Cursor at;
    RowFragments rows;
    pipeline.wait_full(at);
    rows.template load<kA>(pipeline.a_tile(at.stage), warp);
    for (int tile = 0; tile < tiles; ++tile) {
      const SplitFragments a(rows);
      if constexpr (kA == Major::kMN) {
        sums.add(rows);
      }
      pipeline.wait_split(at);
      float tile_sum[Shape::kBlockN / 2];
      // Otherwise both would come to add their sums at one time, with nothing left for the tensor
      // cores.
      take_turn(group);
      start_tile(a, pipeline, at.stage, tile_sum);
      if (group == 0 || tile + 1 < tiles) {
        pass_turn(group);
      }
      const int stage = at.stage;
      at.advance();
      if (tile + 1 < tiles) {
        pipeline.wait_full(at);
        rows.template load<kA>(pipeline.a_tile(at.stage), warp);
      }
      warpgroup_wait<0>();
      warpgroup_fence_sums(tile_sum);
      pipeline.release(stage);
#pragma unroll
      for (int i = 0; i < Shape::kBlockN / 2; ++i) {
        sum[i] += tile_sum[i];
      }
    }
  }

 private:
  /// Starts the products of a tile, from zero.
  static __device__ void start_tile(const SplitFragments& a, const Pipeline& pipeline, int stage,
                                    float (&sum)[Shape::kBlockN / 2]) {
    const uint64_t b_upper = warpgroup_operand(pipeline.b_tile(stage));
    const uint64_t b_rest = warpgroup_operand(pipeline.b_rest(stage));
    warpgroup_fence_sums(sum);
    warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < RowFragments::kSteps; ++step) {
      warpgroup_mma_tf32<Shape::kBlockN>(sum, a.rest.steps[step], b_upper + step * kWarpgroupStep,
                                         step > 0);
    }
#pragma unroll
    for (int step = 0; step < RowFragments::kSteps; ++step) {
      warpgroup_mma_tf32<Shape::kBlockN>(sum, a.upper.steps[step], b_rest + step * kWarpgroupStep);
    }
#pragma unroll
    for (int step = 0; step < RowFragments::kSteps; ++step) {
      warpgroup_mma_tf32<Shape::kBlockN>(sum, a.upper.steps[step], b_upper + step * kWarpgroupStep);
    }
    warpgroup_commit();
  }

  /// By thread `thread` of those that split. An element's rest lies where the element does.
  static __device__ void split_tiles(const Pipeline& pipeline, int tiles, int thread) {
    constexpr int kChunks = Pipeline::kBBytes / 16;
    constexpr int kThreads = layout::kSplittingWarps * 32;
    constexpr int kTogether = 4;
    typename Pipeline::Cursor at;
    for (int tile = 0; tile < tiles; ++tile, at.advance()) {
      pipeline.wait_full(at);
#pragma unroll 1
      for (int first = thread; first < kChunks; first += kThreads * kTogether) {
        uint4 chunk[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          if (first + i * kThreads < kChunks) {
            chunk[i] = load_shared16(pipeline.b_tile(at.stage) + (first + i * kThreads) * 16);
          }
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          if (first + i * kThreads < kChunks) {
            store_shared16(
                pipeline.b_rest(at.stage) + (first + i * kThreads) * 16,
                {layout::truncation_rest(chunk[i].x), layout::truncation_rest(chunk[i].y),
                 layout::truncation_rest(chunk[i].z), layout::truncation_rest(chunk[i].w)});
          }
        }
      }
      publish_shared_writes();
      __syncwarp();
      if (threadIdx.x % 32 == 0) {
        arrive(pipeline.split(at.stage));
      }
    }
  }
};

}  // namespace lockstep::cuda
