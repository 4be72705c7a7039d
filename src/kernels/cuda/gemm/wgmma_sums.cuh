#pragma once

// How the sums of wgmma get from registers to global memory.

#include "kernels/layout/warpgroup.h"

namespace lockstep::cuda {

/// Gives a warp's sums, 16 rows of them, to `store` in runs of four neighbouring columns, from
/// column0 on; `row_of` maps the sixteen to rows of c. They pass through `memory`, this warp's own,
/// kPiece columns at a time (warp_sums_floats), so that a warp touches whole lines of global
/// memory: as the products leave them, lanes hold pieces of 8 bytes.
template <int kPiece, int kSums, class RowOf, class Store>
__device__ void store_sums(const float (&sum)[kSums], float* memory, const RowOf& row_of,
                           int column0, const Store& store) {
  constexpr int kPitch = layout::warp_sums_pitch(kPiece);
  constexpr int kColumns = 2 * kSums;
  static_assert(kColumns % kPiece == 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int first = 0; first < kColumns; first += kPiece) {
    if (first > 0) {
      __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < kPiece / 8; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float* const to = memory + (lane / 4 + half * 8) * kPitch + 8 * j + lane % 4 * 2;
        const int at = first / 2 + 4 * j + 2 * half;
        *reinterpret_cast<float2*>(to) = make_float2(sum[at], sum[at + 1]);
      }
    }
    __syncwarp();
    constexpr int kRowChunks = kPiece / 4;
    constexpr int kTogether = 4;  // whose operands are fetched before any is stored
    static_assert(16 * kRowChunks / 32 % kTogether == 0);
#pragma unroll 1
    for (int i = 0; i < 16 * kRowChunks / 32; i += kTogether) {
      typename Store::Fetched fetched[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int chunk = (i + j) * 32 + lane;
        fetched[j] =
            store.fetch(row_of(chunk / kRowChunks), column0 + first + chunk % kRowChunks * 4);
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int chunk = (i + j) * 32 + lane;
        const int row = chunk / kRowChunks;
        const int column = chunk % kRowChunks * 4;
        store.store4(row_of(row), column0 + first + column,
                     *reinterpret_cast<const float4*>(memory + row * kPitch + column), fetched[j]);
      }
    }
  }
}

}  // namespace lockstep::cuda
