#pragma once

// What the instructions of a warp take of tiles in shared memory, for mma.sync in TF32: fragments
// are read from either major without a transposed copy.

#include "kernels/cuda/gemm/staged_tile.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/ptx/shared.cuh"
#include "kernels/layout/thread_map.h"

namespace lockstep::cuda {

using layout::Role;

/// Where TileStager puts the chunks of an operand whose lanes own kGroup neighbours.
template <Major kMajor, int kExtent, int kDepth, int kGroup>
struct FragmentLayout {
  static constexpr int kPitch = kMajor == Major::kK ? kDepth : kExtent;
  static constexpr __host__ __device__ int chunk(int row, int chunk) {
    return layout::staged_chunk<kMajor, kExtent, kDepth, kGroup>(row, chunk);
  }
  static constexpr __host__ __device__ int key(int row) {
    return layout::staged_key<kMajor, kGroup>(row);
  }
};

/// A warp's fragments of one operand for eight k, as they lie in shared memory: the values of which
/// lane (g, t) owns kGroup neighbours of the extent, from kGroup g on. Registers: [group index][k
/// half], the value at (kGroup g + index, t + 4 half).
template <Role kRole, Major kMajor, int kExtent, int kDepth, int kGroup>
struct WarpFragments {
  uint32_t values[kGroup][2];

  /// Where in a tile the lane's loads begin, in bytes; the warp's part starts at e0.
  static __device__ uint32_t origin(int e0) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return 4 * (kMajor == Major::kK
                    ? layout::matrix_row_origin<kRole, kExtent, kDepth, kGroup>(lane, e0)
                    : layout::group_origin<kExtent, kDepth, kGroup>(lane, e0));
  }

  /// `at` is the origin in a tile that starts at a multiple of 128 bytes.
  __device__ void load(uint32_t at, int k0) {
    if constexpr (kMajor == Major::kK) {
#pragma unroll
      for (int i = 0; i < kGroup; i += 2) {
        uint32_t four[4];
        load_matrices(four, layout::matrix_row_offset<kDepth, 4>(at, k0, i));
#pragma unroll
        for (int matrix = 0; matrix < 4; ++matrix) {
          const layout::Place place = layout::matrix_place<kRole>(matrix);
          values[i + place.extent][place.depth] = four[matrix];
        }
      }
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < kGroup; i += 4) {
          const uint4 four = load_shared16(layout::group_offset<kExtent, 4>(at, k0, half, i));
          values[i][half] = four.x;
          values[i + 1][half] = four.y;
          values[i + 2][half] = four.z;
          values[i + 3][half] = four.w;
        }
      }
    }
  }
};

/// sum += a · b for one row of fragments.
template <int kColumns>
__device__ void multiply_row(float (&sum)[kColumns][4], const uint32_t (&a)[4],
                             const uint2 (&b)[kColumns]) {
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    mma_tf32(sum[j], a, b[j]);
  }
}

/// What a warp's mma instructions take for eight k: A's fragments of rows kGroupM g + 2 i and + 1,
/// B's of columns kGroupN g + j.
template <int kRows, int kColumns>
struct MmaFactors {
  uint32_t a[kRows][4];
  uint2 b[kColumns];
};

}  // namespace lockstep::cuda
