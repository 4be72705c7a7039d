#pragma once

// Staging a tile of an operand in shared memory by ordinary loads and stores (rungs 3 to 10). A
// staged tile is stored [depth][extent + skew]: the products read it along the extent.

#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/layout/thread_map.h"

namespace lockstep::cuda {

/// Element by element; neighbouring threads walk the axis that is contiguous in global memory.
template <int kExtent, int kDepth, int kThreads, int kPitch, Major kMajor>
__device__ void load_tile(float (&tile)[kDepth][kPitch], const Operand<kMajor>& operand, int e0,
                          int d0) {
  static_assert(kExtent * kDepth % kThreads == 0);
#pragma unroll
  for (int i = 0; i < kExtent * kDepth / kThreads; ++i) {
    const int index = i * kThreads + static_cast<int>(threadIdx.x);
    const int e = kMajor == Major::kK ? index / kDepth : index % kExtent;
    const int d = kMajor == Major::kK ? index % kDepth : index / kExtent;
    tile[d][e] = operand.at(e0 + e, d0 + d);
  }
}

/// A thread's share of a tile, four elements at a time, held in registers between the load from
/// global memory and the store to shared memory, so that computation can stand between the two.
template <int kExtent, int kDepth, int kThreads, Major kMajor>
struct TileRegisters {
  static constexpr int kCount = kExtent * kDepth / 4 / kThreads;
  static_assert(kCount * 4 * kThreads == kExtent * kDepth);
  float4 values[kCount];

  __device__ static layout::Place place(int i) {
    return layout::register_share<kMajor, kExtent, kDepth, kThreads>(static_cast<int>(threadIdx.x),
                                                                     i);
  }

  __device__ void load(const Operand<kMajor>& operand, int e0, int d0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = operand.at4(e0 + place(i).extent, d0 + place(i).depth);
    }
  }

  template <int kPitch>
  __device__ void store(float (&tile)[kDepth][kPitch]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const auto [e, d] = place(i);
      if constexpr (kMajor == Major::kK) {
        tile[d][e] = values[i].x;
        tile[d + 1][e] = values[i].y;
        tile[d + 2][e] = values[i].z;
        tile[d + 3][e] = values[i].w;
      } else {
        *reinterpret_cast<float4*>(&tile[d][e]) = values[i];
      }
    }
  }
};

}  // namespace lockstep::cuda
