#pragma once

// Filling tiles of a head's rows in shared memory by asynchronous copies.

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/layout/attention_tile.h"

namespace lockstep::cuda {

/// One thread's part in filling tiles of kRows rows: one chunk of each 32 floats of every
/// kRowStep-th row, eight neighbouring threads to a row. Keys repeat every eight rows, so that all
/// of the thread's places are constants away from its first. What does not exist becomes zero: rows
/// behind the last, elements from heads.head_dim on.
template <class Key, int kHeadDim, int kRows, int kThreads>
class HeadTile {
 public:
  /// `stride`: floats between neighbouring rows in global memory.
  __device__ HeadTile(const Heads& heads, int64_t stride)
      : stride_(stride),
        head_dim_(heads.head_dim),
        vectorized_(heads.vectorized),
        row_(static_cast<int>(threadIdx.x) / 8),
        chunk_(static_cast<int>(threadIdx.x) % 8) {}

  /// Starts the copies of rows from, from + stride, … of which `rows` exist.
  __device__ void fill(float* tile, const float* from, int rows) const {
    const uint32_t to = shared_address(tile + layout::row_chunk<Key, kHeadDim>(row_, chunk_));
    const float* source = from + row_ * stride_ + chunk_ * 4;
    if (rows >= kRows && vectorized_ && head_dim_ == kHeadDim) {
#pragma unroll
      for (int i = 0; i < kRows / kRowStep; ++i) {
#pragma unroll
        for (int d = 0; d < kHeadDim; d += 32) {
          copy16_async(to + (i * kRowStep * kHeadDim + d) * 4, source + d);
        }
        source += kRowStep * stride_;
      }
    } else {
      fill_edge(to, source, rows - row_);
    }
  }

 private:
  static constexpr int kRowStep = kThreads / 8;
  static_assert(kRows % kRowStep == 0 && kRowStep % 8 == 0);

  __device__ void fill_edge(uint32_t to, const float* source, int rows) const {
#pragma unroll 1
    for (int i = 0; i < kRows; i += kRowStep) {
#pragma unroll 1
      for (int d = 0; d < kHeadDim; d += 32) {
        const int left = i < rows ? head_dim_ - d - chunk_ * 4 : 0;
        if (vectorized_) {
          copy16_async_or_zero(to, source + d, left > 0);
        } else {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            copy4_async(to + e * 4, source + d + e, e < left ? 4 : 0);
          }
        }
        to += 32 * 4;
      }
      to += (kRowStep - 1) * kHeadDim * 4;
      source += kRowStep * stride_;
    }
  }

  int64_t stride_;
  int head_dim_;
  bool vectorized_;
  int row_;
  int chunk_;
};

}  // namespace lockstep::cuda
