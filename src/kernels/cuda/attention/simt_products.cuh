#pragma once

// The products of attention on one warp's tile, in FFMA (attention_products.cuh).

#include "kernels/cuda/warp_reduce.cuh"
#include "kernels/layout/attention_tile.h"

namespace lockstep::cuda {

/// A warp's tile of scores: 4 kRows rows by 8 kColumns columns, lane (y, x) of 4 x 8 with rows 4 i
/// + y and columns x + 8 j. Lanes 2 i and 2 i + 1 share a column and lanes that differ in bit 1 a
/// row: the hardware then serves a warp's 16-byte loads in two halves, not in four quarters.
template <int kHeadDim_, int kRows_, int kColumns_>
struct SimtProducts {
  using Key = layout::SimtTileKey;
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kTileRows = 4 * kRows;
  static constexpr int kTileColumns = 8 * kColumns;
  static constexpr int kScratchFloats = kTileRows * layout::kProbabilityColumns;  ///< of a warp
  static_assert(kColumns % 4 == 0 && kHeadDim % 32 == 0);

  using Scores = float[kRows][kColumns];
  using Sums = float[kRows][kHeadDim / 8];

  static __device__ int lane_y() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return lane % 2 + lane / 16 * 2;
  }
  static __device__ int lane_x() { return static_cast<int>(threadIdx.x) % 16 / 2; }
  static __device__ int row(int i) { return 4 * i + lane_y(); }
  static __device__ int column(int j) { return lane_x() + 8 * j; }
  static __device__ bool first_of_row() { return lane_x() == 0; }

  template <class Operation>
  static __device__ float reduce_row(float value, Operation operation) {
#pragma unroll
    for (int mask = 2; mask <= 8; mask *= 2) {
      value = operation(value, __shfl_xor_sync(kAllLanes, value, mask));
    }
    return value;
  }

  struct Left {
    const float* rows;
    __device__ explicit Left(const float* tile_rows) : rows(tile_rows) {}
  };

  static __device__ void scores(Scores& s, const Left& left, const float* right) {
    const int y = lane_y();
    const int x = lane_x();
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        s[i][j] = 0;
      }
    }
#pragma unroll 2
    for (int chunk = 0; chunk < kHeadDim / 4; ++chunk) {
      float4 b[kColumns];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        b[j] = load4(right + (x + 8 * j) * kHeadDim + ((chunk ^ x) * 4));
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float4 a =
            load4(left.rows + (4 * i + y) * kHeadDim + ((chunk ^ (4 * (i % 2) + y)) * 4));
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          s[i][j] = fmaf(a.x, b[j].x, s[i][j]);
          s[i][j] = fmaf(a.y, b[j].y, s[i][j]);
          s[i][j] = fmaf(a.z, b[j].z, s[i][j]);
          s[i][j] = fmaf(a.w, b[j].w, s[i][j]);
        }
      }
    }
  }

  /// p goes through the warp's scratch, whole chunks of columns at a time.
  static __device__ void accumulate(Sums& sums, const Scores& p, const float* right,
                                    float* scratch) {
    const int y = lane_y();
    const int x = lane_x();
    constexpr int part = layout::kProbabilityColumns / 8;  // columns of a lane at a time
#pragma unroll
    for (int first = 0; first < kColumns; first += part) {
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < part; ++j) {
          scratch[layout::probability_chunk(4 * i + y, 2 * j + x / 4) + x % 4] = p[i][first + j];
        }
      }
      __syncwarp();
      multiply_part(sums, scratch, right + first * 8 * kHeadDim, y, x);
    }
  }

  static __device__ void scale_row(Sums& sums, int i, float factor) {
#pragma unroll
    for (int c = 0; c < kHeadDim / 8; ++c) {
      sums[i][c] *= factor;
    }
  }

  template <class Visit>
  static __device__ void for_each4(const Sums& sums, int i, Visit visit) {
#pragma unroll
    for (int c = 0; c < kHeadDim / 32; ++c) {
      visit((lane_x() + 8 * c) * 4, make_float4(sums[i][4 * c], sums[i][4 * c + 1],
                                                sums[i][4 * c + 2], sums[i][4 * c + 3]));
    }
  }

 private:
  static __device__ float4 load4(const float* from) {
    return *reinterpret_cast<const float4*>(from);
  }

  static __device__ void multiply_part(Sums& sums, const float* p_tile, const float* right, int y,
                                       int x) {
#pragma unroll 2
    for (int chunk = 0; chunk < layout::kProbabilityColumns / 4; ++chunk) {
      float4 a[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        a[i] = load4(p_tile + layout::probability_chunk(4 * i + y, chunk));
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float* row = right + (chunk * 4 + e) * kHeadDim;
        const int at = (x ^ Key::key(chunk * 4 + e)) * 4;
#pragma unroll
        for (int c = 0; c < kHeadDim / 32; ++c) {
          const float4 b = load4(row + 32 * c + at);
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            const float value = e == 0 ? a[i].x : e == 1 ? a[i].y : e == 2 ? a[i].z : a[i].w;
            sums[i][4 * c] = fmaf(value, b.x, sums[i][4 * c]);
            sums[i][4 * c + 1] = fmaf(value, b.y, sums[i][4 * c + 1]);
            sums[i][4 * c + 2] = fmaf(value, b.z, sums[i][4 * c + 2]);
            sums[i][4 * c + 3] = fmaf(value, b.w, sums[i][4 * c + 3]);
          }
        }
      }
    }
  }
};

}  // namespace lockstep::cuda
