#pragma once

// The products of attention on one warp's tile, on tensor cores (attention_products.cuh).

#include "kernels/cuda/attention/mma_operands.cuh"
#include "kernels/cuda/ptx/mma.cuh"
#include "kernels/cuda/warp_reduce.cuh"
#include "kernels/layout/attention_tile.h"

namespace lockstep::cuda {

/// A warp's tile of scores: 16 kFragments rows by kTileColumns columns, lane (g, t) with rows 8 i +
/// g and columns 8 j + 2 t and 8 j + 2 t + 1.
///
/// The order of k in a product is free, so that no fragment is ever shuffled or transposed:
///   q·k   k runs along the head's elements. For two steps of eight, lane t takes elements 4 t … 4
///         t + 3 of sixteen, one 16-byte load of a row.
///   p·v   k runs along the columns of p. Where an accumulator has columns 2 t and 2 t + 1, the A
///         fragment has k = t and t + 4: the right operand is read at rows 2 t and 2 t + 1. Its
///         columns are n, whose order is free too: lane g takes elements 4 g … 4 g + 3 of 32, one
///         16-byte load for four fragments.
/// kHoldLeft: of MmaLeft.
template <int kHeadDim_, int kFragments, int kTileColumns_, bool kHoldLeft>
struct MmaProducts {
  using Key = layout::MmaTileKey;
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kRows = 2 * kFragments;
  static constexpr int kTileRows = 16 * kFragments;
  static constexpr int kTileColumns = kTileColumns_;
  static constexpr int kColumns = kTileColumns / 4;
  static constexpr int kScratchFloats = 0;
  static_assert(kTileColumns % 8 == 0 && kHeadDim % 32 == 0);

  using Scores = float[kRows][kColumns];
  using Sums = float[kRows][kHeadDim / 4];

  static __device__ int row(int i) { return 8 * i + mma_lane_g(); }
  static __device__ int column(int j) { return j / 2 * 8 + 2 * mma_lane_t() + j % 2; }
  static __device__ bool first_of_row() { return mma_lane_t() == 0; }

  template <class Operation>
  static __device__ float reduce_row(float value, Operation operation) {
    value = operation(value, __shfl_xor_sync(kAllLanes, value, 1));
    return operation(value, __shfl_xor_sync(kAllLanes, value, 2));
  }

  using Left = MmaLeft<kHeadDim, kFragments, kHoldLeft>;

  static __device__ void scores(Scores& s, const Left& left, const float* right) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        s[i][j] = 0;
      }
    }
#pragma unroll
    for (int pair = 0; pair < kHeadDim / 16; ++pair) {
      const typename Left::StepPair steps = left.steps(pair);
#pragma unroll
      for (int n = 0; n < kTileColumns / 8; ++n) {
        const uint4 b =
            Tile::rounded(Tile::load4(right + Tile::row_share(pair) + Tile::row_offset(n, pair)));
#pragma unroll
        for (int m = 0; m < kFragments; ++m) {
          multiply(s[2 * m][2 * n], s[2 * m][2 * n + 1], s[2 * m + 1][2 * n],
                   s[2 * m + 1][2 * n + 1], steps.a[m][0], b.x, b.y);
        }
#pragma unroll
        for (int m = 0; m < kFragments; ++m) {
          multiply(s[2 * m][2 * n], s[2 * m][2 * n + 1], s[2 * m + 1][2 * n],
                   s[2 * m + 1][2 * n + 1], steps.a[m][1], b.z, b.w);
        }
      }
    }
  }

  static __device__ void accumulate(Sums& sums, const Scores& p, const float* right,
                                    float* /*scratch*/) {
#pragma unroll
    for (int k = 0; k < kTileColumns / 8; ++k) {
      uint32_t a[kFragments][4];
#pragma unroll
      for (int m = 0; m < kFragments; ++m) {
        a[m][0] = round_to_tf32(__float_as_uint(p[2 * m][2 * k]));
        a[m][1] = round_to_tf32(__float_as_uint(p[2 * m + 1][2 * k]));
        a[m][2] = round_to_tf32(__float_as_uint(p[2 * m][2 * k + 1]));
        a[m][3] = round_to_tf32(__float_as_uint(p[2 * m + 1][2 * k + 1]));
      }
#pragma unroll
      for (int group = 0; group < kHeadDim / 32; ++group) {
        const int offset = 8 * k * kHeadDim + 32 * group;
        const uint4 even = Tile::rounded(Tile::load4(right + Tile::column_share(0) + offset));
        const uint4 odd = Tile::rounded(Tile::load4(right + Tile::column_share(1) + offset));
        const uint32_t b[4][2] = {
            {even.x, odd.x}, {even.y, odd.y}, {even.z, odd.z}, {even.w, odd.w}};
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const int at = 8 * group + n;
#pragma unroll
          for (int m = 0; m < kFragments; ++m) {
            multiply(sums[2 * m][at], sums[2 * m][at + 4], sums[2 * m + 1][at],
                     sums[2 * m + 1][at + 4], a[m], b[n][0], b[n][1]);
          }
        }
      }
    }
  }

  static __device__ void scale_row(Sums& sums, int i, float factor) {
#pragma unroll
    for (int c = 0; c < kHeadDim / 4; ++c) {
      sums[i][c] *= factor;
    }
  }

  template <class Visit>
  static __device__ void for_each4(const Sums& sums, int i, Visit visit) {
#pragma unroll
    for (int c = 0; c < kHeadDim / 16; ++c) {
      visit(
          32 * (c / 2) + 8 * mma_lane_t() + 4 * (c % 2),
          make_float4(sums[i][4 * c], sums[i][4 * c + 1], sums[i][4 * c + 2], sums[i][4 * c + 3]));
    }
  }

 private:
  using Tile = MmaTile<kHeadDim>;

  static __device__ void multiply(float& d0, float& d1, float& d2, float& d3,
                                  const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    float d[4] = {d0, d1, d2, d3};
    mma_tf32(d, a, make_uint2(b0, b1));
    d0 = d[0];
    d1 = d[1];
    d2 = d[2];
    d3 = d[3];
  }
};

}  // namespace lockstep::cuda
