#pragma once

// The multi-stage tensor-core product (TF32, mma.sync): cp.async feeds swizzled tiles.

#include "kernels/cuda/gemm/mma_fragments.cuh"
#include "kernels/cuda/gemm/mma_pipeline.cuh"

namespace lockstep::cuda {

/// A warp's part of a product: rows kGroupM g + i, columns kGroupN (2 t) + j and kGroupN (2 t + 1)
/// + j of its tile, which starts at (row, column) of the block's. A step is kPieces times eight k
/// deep. Products derive from it: take() makes factors of what load() brought, and
/// multiply(after_row) uses them, calling after_row(i) behind each row i of instructions.
template <class Shape, Major kA, Major kB, int kPieces>
class WarpProduct {
 public:
  static constexpr int kGroupM = Shape::kWarpM / 8;
  static constexpr int kGroupN = Shape::kWarpN / 8;
  static constexpr int kRows = kGroupM / 2;  ///< of mma instructions
  static constexpr int kSteps = Shape::kDepth / (8 * kPieces);
  static_assert(kGroupM == 4 || kGroupM == 8);
  static_assert(kGroupN == 4 || kGroupN == 8);
  using AFragments = WarpFragments<Role::kA, kA, Shape::kBlockM, Shape::kDepth, kGroupM>;
  using BFragments = WarpFragments<Role::kB, kB, Shape::kBlockN, Shape::kDepth, kGroupN>;

  float sum[kRows][kGroupN][4] = {};

  __device__ WarpProduct(int row, int column)
      : row_(row),
        column_(column),
        a_origin_(AFragments::origin(row)),
        b_origin_(BFragments::origin(column)) {}

  /// Turns to these tiles.
  __device__ void begin(uint32_t a_tile, uint32_t b_tile) {
    a_at_ = a_tile + a_origin_;
    b_at_ = b_tile + b_origin_;
  }

  __device__ void load(int step) {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      a_[piece].load(a_at_, (step * kPieces + piece) * 8);
      b_[piece].load(b_at_, (step * kPieces + piece) * 8);
    }
  }

  /// Those of a piece, each word passed through map.
  using Factors = MmaFactors<kRows, kGroupN>;
  template <class Map>
  __device__ Factors factors(int piece, Map map) const {
    Factors made;
#pragma unroll
    for (int j = 0; j < kGroupN; ++j) {
      const auto& column = b_[piece].values[j];
      made.b[j] = make_uint2(map(column[0]), map(column[1]));
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        made.a[i][r] = map(a_[piece].values[2 * i + r % 2][r / 2]);
      }
    }
    return made;
  }

  /// Calls visit(row, column, value4) for each run of four neighbouring columns, in the block's
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
          visit(row_ + kGroupM * g + i, column_ + kGroupN * (2 * t + odd) + j,
                make_float4(sum[i / 2][j][r], sum[i / 2][j + 1][r], sum[i / 2][j + 2][r],
                            sum[i / 2][j + 3][r]));
        }
      }
    }
  }

 private:
  int row_;
  int column_;
  uint32_t a_origin_;
  uint32_t b_origin_;
  uint32_t a_at_;
  uint32_t b_at_;
  AFragments a_[kPieces];
  BFragments b_[kPieces];
};

/// Products of factors that are rounded to TF32.
template <class Shape, Major kA, Major kB>
class RoundedProduct : public WarpProduct<Shape, kA, kB, 1> {
  using Base = WarpProduct<Shape, kA, kB, 1>;

 public:
  /// Steps that are compiled one after the other. Of MN-major operands, fragments are put together
  /// from several loads: within one step the compiler rounds them into place, but where it sees
  /// several, it rounds in place and moves the results, instruction by instruction.
  static constexpr int kUnroll = kA == Major::kK && kB == Major::kK ? Base::kSteps : 1;
  using Base::Base;

  __device__ void take() { factors_ = this->factors(0, round_to_tf32); }

  template <class AfterRow>
  __device__ void multiply(AfterRow after_row) {
#pragma unroll
    for (int i = 0; i < Base::kRows; ++i) {
      multiply_row(this->sum[i], factors_.a[i], factors_.b);
      after_row(i);
    }
  }

 private:
  typename Base::Factors factors_;
};

/// Block (x, y, z) computes tile (y, x) of the z-th slice of k. Product<Shape, kA, kB> is what each
/// warp does: see WarpProduct. Store says how deep a slice is, and takes what comes out: see
/// Output.
template <template <class, Major, Major> class Product, class Shape, bool kVectorized, Major kA,
          Major kB, class Store>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kResident)
    gemm_mma_kernel(Operand<kA> a, Operand<kB> b, Store store) {
  extern __shared__ __align__(128) float shared[];
  using Work = Product<Shape, kA, kB>;
  using ALayout = FragmentLayout<kA, Shape::kBlockM, Shape::kDepth, Work::kGroupM>;
  using BLayout = FragmentLayout<kB, Shape::kBlockN, Shape::kDepth, Work::kGroupN>;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int m0 = static_cast<int>(blockIdx.y) * Shape::kBlockM;
  const int n0 = static_cast<int>(blockIdx.x) * Shape::kBlockN;
  const int d0 = static_cast<int>(blockIdx.z) * store.slice_depth;
  const int depth = min(a.depth - d0, store.slice_depth);

  Work work(warp / Shape::kWarpsN * Shape::kWarpM, warp % Shape::kWarpsN * Shape::kWarpN);
  TileStager<kA, Shape::kBlockM, Shape::kDepth, Shape::kThreads, kVectorized, ALayout, Work::kSteps>
      a_stager(a, m0, d0);
  TileStager<kB, Shape::kBlockN, Shape::kDepth, Shape::kThreads, kVectorized, BLayout, Work::kSteps>
      b_stager(b, n0, d0);
  run_mma_pipeline<Shape>(kept(shared_address(shared)), a_stager, b_stager,
                          (depth + Shape::kDepth - 1) / Shape::kDepth, work);
  work.for_each4(
      [&](int row, int column, float4 value) { store.store4(m0 + row, n0 + column, value); });
}

/// The kernels of rounded factors by tiles of Shape, for launch_product.
template <class Shape_, bool kVectorized>
struct RoundedMmaKernel {
  using Shape = Shape_;
  template <Major kA, Major kB, class Store>
  static auto* get() {
    return &gemm_mma_kernel<RoundedProduct, Shape, kVectorized, kA, kB, Store>;
  }
};

}  // namespace lockstep::cuda
