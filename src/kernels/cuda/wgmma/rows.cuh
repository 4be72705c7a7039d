#pragma once

// Rows of a that the warps which multiply hold in registers: because they lie MN-major, which wgmma
// cannot read from shared memory, or because they are split.

#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/shared.cuh"
#include "kernels/cuda/ptx/wgmma.cuh"
#include "kernels/layout/swizzle.h"
#include "kernels/layout/warpgroup.h"

namespace lockstep::cuda {

using layout::Major;

/// A warp's 16 rows of a tile of a: a fragment for each step of k.
struct RowFragments {
  static constexpr int kSteps = layout::kWarpgroupDepth / 8;
  WarpgroupFragment steps[kSteps];

  /// The rows of warp `warp`: of a K-major tile neighbours, of an MN-major one panel_row's.
  template <Major kA>
  __device__ void load(uint32_t tile, int warp) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if constexpr (kA == Major::kK) {
        // Matrices 0 to 3: the first eight rows, the others, both again four k on.
        const int word = layout::swizzled_chunk(warp * 16 + lane % 16, 2 * step + lane / 16);
        load_matrices(steps[step].words, tile + word * 4);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int word = layout::panel_offset(layout::panel_row(warp, lane / 4 + i % 2 * 8),
                                                lane % 4 + i / 2 * 4);
          steps[step].words[i] = load_shared4(tile + word * 4 + step * 8 * layout::kPanelRows * 4);
        }
      }
    }
  }

  __device__ void round() {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        steps[step].words[i] = round_to_tf32(steps[step].words[i]);
      }
    }
  }
};

/// Sums over k, where they are wanted, of the two rows of which a lane holds every fourth element.
struct RowSums {
  bool wanted;
  float upper = 0;
  float lower = 0;

  __device__ void add(const RowFragments& rows) {
    if (wanted) {
      upper += sum_of(rows, 0);
      lower += sum_of(rows, 1);
    }
  }

  /// Whole sums, in each of a row's lanes.
  __device__ void combine() {
#pragma unroll
    for (int lanes = 1; lanes < 4; lanes *= 2) {
      upper += __shfl_xor_sync(~0U, upper, lanes);
      lower += __shfl_xor_sync(~0U, lower, lanes);
    }
  }

 private:
  static __device__ float sum_of(const RowFragments& rows, int half) {
    float sum = 0;
#pragma unroll
    for (int step = 0; step < RowFragments::kSteps; ++step) {
      const WarpgroupFragment& fragment = rows.steps[step];
      sum += __uint_as_float(fragment.words[half]) + __uint_as_float(fragment.words[2 + half]);
    }
    return sum;
  }
};

}  // namespace lockstep::cuda
