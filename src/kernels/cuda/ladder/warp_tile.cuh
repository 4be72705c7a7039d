#pragma once

// The warp tile of rungs 7 and 8: where a warp and a lane stand in the block's 128 x 128 tile.

#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/cuda/gemm/output.cuh"
#include "kernels/cuda/ladder/outer_product.cuh"

namespace lockstep::cuda {

/// Eight warps of 32 x 64 each; the lanes of a warp as 4 x 8, each with 8 x 8 elements in two by
/// two pieces of 4 x 4, so that a load of four floats by the lanes of a warp touches few distinct
/// words, most of them broadcast.
struct WarpTile {
  static constexpr int kBlock = 128;
  static constexpr int kThreads = 256;
  static constexpr int kWarpM = 32;
  static constexpr int kWarpN = 64;
  static constexpr int kPiece = 4;

  int row;     ///< of the lane's first piece in the block's tile; the second lies half a warp tile
               ///< below
  int column;  ///< likewise to the right

  __device__ WarpTile() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    row = warp / (kBlock / kWarpN) * kWarpM + lane / 8 * kPiece;
    column = warp % (kBlock / kWarpN) * kWarpN + lane % 8 * kPiece;
  }

  /// One k of the product of two staged tiles' rows.
  __device__ void multiply(float (&sum)[8][8], const float* a_row, const float* b_row) const {
    float a_values[8];
    float b_values[8];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      load_shared(reinterpret_cast<float(&)[4]>(a_values[half * 4]),
                  a_row + row + half * (kWarpM / 2));
      load_shared(reinterpret_cast<float(&)[4]>(b_values[half * 4]),
                  b_row + column + half * (kWarpN / 2));
    }
    add_outer_product(sum, a_values, b_values);
  }

  __device__ void store(const Output& c, int m0, int n0, float (&sum)[8][8]) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        c.store4(m0 + row + i / 4 * (kWarpM / 2) + i % 4, n0 + column + half * (kWarpN / 2),
                 *reinterpret_cast<float4*>(&sum[i][half * 4]));
      }
    }
  }
};

}  // namespace lockstep::cuda
