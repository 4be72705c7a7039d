#pragma once

// wgmma of factors rounded to TF32 with an MN-major a, which it cannot read from shared memory: the
// warps that multiply bring their rows to registers, of the next tile while this one's products are
// computed. What a weight gradient reads as its a is then not copied transposed, and its sums over
// rows, the bias' gradient, come from the same reading.

#include "kernels/cuda/gemm/wgmma_operands.cuh"
#include "kernels/cuda/ptx/registers.cuh"
#include "kernels/cuda/wgmma/rows.cuh"

namespace lockstep::cuda {

template <class Shape_>
struct MnMajorProducts {
  using Shape = Shape_;
  using Pipeline = StagePipeline<Shape>;
  static constexpr Major kA = Major::kMN;
  static constexpr int kThreads = layout::kMultiplyingWarps * 32 + 128;
  // Of a thread that multiplies: 128 sums of the widest tile, and two tiles' rows.
  static constexpr int kRegisters = 216;
  static constexpr int kSupplyRegisters = 72;
  static_assert(2 * kRegisters + kSupplyRegisters <= 3 * 168, "what a block of 384 threads gets");

  /// By the warpgroup that does not multiply: its first thread.
  static __device__ void supply(const Pipeline& pipeline, const WgmmaOperands& operands,
                                const WgmmaWork& work) {
    release_registers<kSupplyRegisters>();
    if (threadIdx.x == layout::kMultiplyingWarps * 32) {
      typename Pipeline::Cursor at;
      fill_tiles<kA>(pipeline, at, operands, work);
    }
  }

  /// One warpgroup's products of `tiles` tiles, added to `sum`; to `sums`, the
  /// sums of its rows of a.
  static __device__ void multiply(const Pipeline& pipeline, int /*group*/, int tiles,
                                  float (&sum)[Shape::kBlockN / 2], RowSums& sums) {
    claim_registers<kRegisters>();
    Loop loop = {pipeline, sums, sum};
    RowFragments even;
    RowFragments odd;
    loop.load(even);
    warpgroup_fence_sums(sum);
    int tile = 0;
    for (; tile + 2 < tiles; tile += 2) {
      loop.step(even, odd);
      loop.step(odd, even);
    }
    if (tile + 1 < tiles) {
      loop.step(even, odd);
      loop.last_step(odd);
    } else {
      loop.last_step(even);
    }
    warpgroup_fence_sums(sum);
  }

 private:
  struct Loop {
    const Pipeline& pipeline;
    RowSums& sums;
    float (&sum)[Shape::kBlockN / 2];
    typename Pipeline::Cursor at = {};  ///< of the tile to load next
    int stage = 0;                      ///< of the tile loaded last
    int read_stage = -1;                ///< of the tile whose products may be unfinished

    __device__ void load(RowFragments& rows) {
      pipeline.wait_full(at);
      rows.template load<kA>(pipeline.a_tile(at.stage), static_cast<int>(threadIdx.x) / 32);
      sums.add(rows);
      rows.round();
      stage = at.stage;
      at.advance();
    }
    __device__ void start(const RowFragments& rows) {
      const uint64_t b_operand = warpgroup_operand(pipeline.b_tile(stage));
      warpgroup_arrive();
#pragma unroll
      for (int step = 0; step < RowFragments::kSteps; ++step) {
        warpgroup_mma_tf32<Shape::kBlockN>(sum, rows.steps[step],
                                           b_operand + step * kWarpgroupStep);
      }
      warpgroup_commit();
    }
    /// The products of `rows`; meanwhile `next` is loaded, when those before are finished.
    __device__ void step(const RowFragments& rows, RowFragments& next) {
      start(rows);
      warpgroup_wait<1>();
      if (read_stage >= 0) {
        pipeline.release(read_stage);
      }
      read_stage = stage;
      load(next);
    }
    __device__ void last_step(const RowFragments& rows) {
      start(rows);
      warpgroup_wait<0>();
    }
  };
};

}  // namespace lockstep::cuda
