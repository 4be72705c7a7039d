#pragma once

// The multi-stage tensor-core product (TF32, mma.sync): cp.async feeds swizzled tiles, fragments
// are read from either major without a transposed copy.

#include "kernels/cuda/gemm/pipeline.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/layout/thread_map.h"

namespace lockstep::cuda {

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

/// A warp's fragments of one operand for one step of k: kCount indices of the extent, of which lane
/// (g, t) owns kGroup neighbours from kGroup g on. Registers: [group index][k half], the value at
/// (kGroup g + index, t + 4 half).
template <Major kMajor, int kExtent, int kDepth, int kGroup>
struct WarpFragments {
  uint32_t values[kGroup][2];

  __device__ void load(const float* tile, int e0, int k0) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if constexpr (kMajor == Major::kK) {
#pragma unroll
      for (int i = 0; i < kGroup; i += 2) {
        uint32_t four[4];
        load_matrices(four,
                      tile + layout::matrix_row_offset<kExtent, kDepth, kGroup>(lane, e0, k0, i));
        values[i][0] = four[0];
        values[i + 1][0] = four[1];
        values[i][1] = four[2];
        values[i + 1][1] = four[3];
      }
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < kGroup; i += 4) {
          const uint4 four = *reinterpret_cast<const uint4*>(
              tile + layout::group_offset<kExtent, kDepth, kGroup>(lane, e0, k0, half, i));
          values[i][half] = four.x;
          values[i + 1][half] = four.y;
          values[i + 2][half] = four.z;
          values[i + 3][half] = four.w;
        }
      }
    }
  }

  /// When the values are used, not when they are loaded: the loads stay in flight meanwhile.
  __device__ void round() {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      values[i][0] = round_to_tf32(values[i][0]);
      values[i][1] = round_to_tf32(values[i][1]);
    }
  }
};

/// A warp's part of the product: rows kGroupM g + i, columns kGroupN (2 t) + j and kGroupN (2 t +
/// 1) + j of its tile, which starts at (row, column) of the block's.
template <class Shape, Major kA, Major kB>
struct MmaCompute {
  static constexpr int kGroupM = Shape::kWarpM / 8;
  static constexpr int kGroupN = Shape::kWarpN / 8;
  static constexpr int kSteps = Shape::kDepth / 8;
  static_assert(kGroupM == 4 || kGroupM == 8);
  static_assert(kGroupN == 4 || kGroupN == 8);

  int row;
  int column;
  WarpFragments<kA, Shape::kBlockM, Shape::kDepth, kGroupM> a[2];
  WarpFragments<kB, Shape::kBlockN, Shape::kDepth, kGroupN> b[2];
  float sum[kGroupM / 2][kGroupN][4] = {};

  template <int kSlot>
  __device__ void load(const float* a_tile, const float* b_tile, int step) {
    a[kSlot].load(a_tile, row, step * 8);
    b[kSlot].load(b_tile, column, step * 8);
  }

  template <int kSlot>
  __device__ void multiply() {
    a[kSlot].round();
    b[kSlot].round();
#pragma unroll
    for (int i = 0; i < kGroupM; i += 2) {
      const auto& upper = a[kSlot].values[i];
      const auto& lower = a[kSlot].values[i + 1];
      const uint32_t rows[4] = {upper[0], lower[0], upper[1], lower[1]};
#pragma unroll
      for (int j = 0; j < kGroupN; ++j) {
        mma_tf32(sum[i / 2][j], rows, make_uint2(b[kSlot].values[j][0], b[kSlot].values[j][1]));
      }
    }
  }

  /// Calls visit(row, column, value4) for each run of four neighbouring columns, in the warp's
  /// tile.
  template <class Visit>
  __device__ void for_each4(Visit visit) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4;
    const int t = lane % 4;
#pragma unroll
    for (int i = 0; i < kGroupM; ++i) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
#pragma unroll
        for (int j = 0; j < kGroupN; j += 4) {
          const int r = i % 2 * 2 + odd;
          visit(kGroupM * g + i, kGroupN * (2 * t + odd) + j,
                make_float4(sum[i / 2][j][r], sum[i / 2][j + 1][r], sum[i / 2][j + 2][r],
                            sum[i / 2][j + 3][r]));
        }
      }
    }
  }
};

/// Block (x, y, z) computes tile (y, x) of the z-th slice of k. Store says how deep a slice is, and
/// takes what comes out: see Output.
template <class Shape, bool kVectorized, Major kA, Major kB, class Store>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kResident)
    gemm_mma_kernel(Operand<kA> a, Operand<kB> b, Store store) {
  extern __shared__ __align__(128) float shared[];
  using Compute = MmaCompute<Shape, kA, kB>;
  using ALayout = FragmentLayout<kA, Shape::kBlockM, Shape::kDepth, Compute::kGroupM>;
  using BLayout = FragmentLayout<kB, Shape::kBlockN, Shape::kDepth, Compute::kGroupN>;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int m0 = static_cast<int>(blockIdx.y) * Shape::kBlockM;
  const int n0 = static_cast<int>(blockIdx.x) * Shape::kBlockN;
  const int d0 = static_cast<int>(blockIdx.z) * store.slice_depth;
  const int depth = min(a.depth - d0, store.slice_depth);

  Compute compute{.row = warp / Shape::kWarpsN * Shape::kWarpM,
                  .column = warp % Shape::kWarpsN * Shape::kWarpN};
  TileStager<kA, Shape::kBlockM, Shape::kDepth, Shape::kThreads, kVectorized, ALayout> a_stager(
      a, m0, d0);
  TileStager<kB, Shape::kBlockN, Shape::kDepth, Shape::kThreads, kVectorized, BLayout> b_stager(
      b, n0, d0);
  run_pipeline<Shape>(shared, a_stager, b_stager, (depth + Shape::kDepth - 1) / Shape::kDepth,
                      compute);
  compute.for_each4([&](int row, int column, float4 value) {
    store.store4(m0 + compute.row + row, n0 + compute.column + column, value);
  });
}

}  // namespace lockstep::cuda
