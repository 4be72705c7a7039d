#pragma once

// The multi-stage fp32 product (FFMA): cp.async feeds padded tiles, operands are read from either
// major.

#include <type_traits>

#include "kernels/cuda/gemm/simt_pipeline.cuh"
#include "kernels/layout/thread_map.h"

namespace lockstep::cuda {

/// Where TileStager puts the chunks of a tile of rows that are kPitch floats long.
template <int kPitch_>
struct OuterProductLayout {
  static constexpr int kPitch = kPitch_;
  static constexpr __host__ __device__ int chunk(int k, int chunk) {
    return layout::outer_product_offset<kPitch>(chunk * 4, k);
  }
  static constexpr __host__ __device__ int key(int /*k*/) { return 0; }
};

/// What fills a tile of [k][extent] from an operand of either major.
template <Major kMajor, int kExtent, class Shape, bool kVectorized>
using SimtStager = std::conditional_t<
    kMajor == Major::kK,
    TransposingStager<kExtent, Shape::kDepth, Shape::kThreads, kExtent + Shape::kPad>,
    TileStager<kMajor, kExtent, Shape::kDepth, Shape::kThreads, kVectorized,
               OuterProductLayout<kExtent + Shape::kPad>>>;

/// A lane's part of the product: pieces of 4 x 4 elements (layout::LaneGrid). (row, column) is the
/// lane's first piece in the block's tile.
template <class Shape>
struct SimtCompute {
  using Lanes = layout::LaneGrid<Shape::kWarpM, Shape::kWarpN>;
  static constexpr int kPitchM = Lanes::kPitchM;
  static constexpr int kPitchN = Lanes::kPitchN;
  static constexpr int kPiecesM = Shape::kWarpM / kPitchM;
  static constexpr int kPiecesN = Shape::kWarpN / kPitchN;
  static constexpr int kSteps = Shape::kDepth;
  static_assert(kPiecesM * kPitchM == Shape::kWarpM && kPiecesN * kPitchN == Shape::kWarpN);

  int row;
  int column;
  float a[2][kPiecesM * 4];
  float b[2][kPiecesN * 4];
  float sum[kPiecesM * 4][kPiecesN * 4] = {};

  template <int kSlot>
  __device__ void load(const float* a_tile, const float* b_tile, int step) {
    load_pieces<Shape::kBlockM + Shape::kPad, kPitchM>(a[kSlot], a_tile, step, row);
    load_pieces<Shape::kBlockN + Shape::kPad, kPitchN>(b[kSlot], b_tile, step, column);
  }

  /// Every other column runs backwards: the row value at the turn is used twice in a row, from the
  /// operand cache. Rows inside of columns, since the assembler then pairs fewer operands of one
  /// register bank.
  template <int kSlot>
  __device__ void multiply() {
#pragma unroll
    for (int j = 0; j < kPiecesN * 4; ++j) {
#pragma unroll
      for (int step = 0; step < kPiecesM * 4; ++step) {
        const int i = j % 2 == 0 ? step : kPiecesM * 4 - 1 - step;
        sum[i][j] = fmaf(a[kSlot][i], b[kSlot][j], sum[i][j]);
      }
    }
  }

  template <class Visit>
  __device__ void for_each4(Visit visit) {
#pragma unroll
    for (int i = 0; i < kPiecesM * 4; ++i) {
#pragma unroll
      for (int piece = 0; piece < kPiecesN; ++piece) {
        visit(row + i / 4 * kPitchM + i % 4, column + piece * kPitchN,
              make_float4(sum[i][piece * 4], sum[i][piece * 4 + 1], sum[i][piece * 4 + 2],
                          sum[i][piece * 4 + 3]));
      }
    }
  }

 private:
  /// Runs of four neighbours of row k from `extent` on, kStep apart.
  template <int kPitch, int kStep, int kCount>
  static __device__ void load_pieces(float (&to)[kCount], const float* tile, int k, int extent) {
#pragma unroll
    for (int piece = 0; piece < kCount / 4; ++piece) {
      *reinterpret_cast<float4*>(&to[piece * 4]) = *reinterpret_cast<const float4*>(
          tile + layout::outer_product_offset<kPitch>(extent + piece * kStep, k));
    }
  }
};

/// Block (x, y, z) computes tile (y, x) of the z-th slice of k. Store says how deep a slice is, and
/// takes what comes out: see Output.
template <class Shape, bool kVectorized, Major kA, Major kB, class Store>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kResident)
    gemm_simt_kernel(Operand<kA> a, Operand<kB> b, Store store) {
  extern __shared__ __align__(128) float shared[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int m0 = static_cast<int>(blockIdx.y) * Shape::kBlockM;
  const int n0 = static_cast<int>(blockIdx.x) * Shape::kBlockN;
  const int d0 = static_cast<int>(blockIdx.z) * store.slice_depth;
  const int depth = min(a.depth - d0, store.slice_depth);

  using Compute = SimtCompute<Shape>;
  Compute compute{.row = warp / Shape::kWarpsN * Shape::kWarpM + Compute::Lanes::row(lane),
                  .column = warp % Shape::kWarpsN * Shape::kWarpN + Compute::Lanes::column(lane)};
  SimtStager<kA, Shape::kBlockM, Shape, kVectorized> a_stager(a, m0, d0);
  SimtStager<kB, Shape::kBlockN, Shape, kVectorized> b_stager(b, n0, d0);
  run_simt_pipeline<Shape>(shared, a_stager, b_stager, (depth + Shape::kDepth - 1) / Shape::kDepth,
                           compute);
  compute.for_each4(
      [&](int row, int column, float4 value) { store.store4(m0 + row, n0 + column, value); });
}

/// The kernels by tiles of Shape, for launch_product.
template <class Shape_, bool kVectorized>
struct SimtKernel {
  using Shape = Shape_;
  template <Major kA, Major kB, class Store>
  static auto* get() {
    return &gemm_simt_kernel<Shape, kVectorized, kA, kB, Store>;
  }
};

}  // namespace lockstep::cuda
