#pragma once

// Tiles in shared memory that asynchronous 16-byte copies fill: what the multi-stage kernels are
// fed by.

#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/layout/swizzle.h"
#include "kernels/layout/thread_map.h"

namespace lockstep::cuda {

/// One thread's part in filling tiles of kExtent x kDepth of an operand, stage after stage along k,
/// row by row as they stand in memory. Layout gives the place of a row's 16-byte chunks: chunk(row,
/// chunk) in floats, key(row) what the chunk was XORed with, kPitch the floats from row to row.
/// Outside of the matrix the tile is filled with zeros. kVectorized: rows start at multiples of 16
/// bytes.
template <Major kMajor, int kExtent, int kDepth, int kThreads, bool kVectorized, class Layout>
class TileStager {
 public:
  static constexpr int kFloats = Layout::kPitch * (kMajor == Major::kK ? kExtent : kDepth);

  /// Of the tiles whose first element is (e0, d0), (e0, d0 + kDepth) ...
  __device__ TileStager(const Operand<kMajor>& operand, int e0, int d0) {
    const int row = static_cast<int>(threadIdx.x) / kRowChunks;
    const int chunk = static_cast<int>(threadIdx.x) % kRowChunks;
    row_step_ = kRowStep * operand.stride();
    offset_ = Layout::chunk(row, chunk);
    if constexpr (kMajor == Major::kK) {
      source_ = operand.address(e0 + row, d0 + chunk * 4);
      rows_left_ = operand.extent - e0 - row;
      columns_left_ = operand.depth - d0 - chunk * 4;
    } else {
      source_ = operand.address(e0 + chunk * 4, d0 + row);
      rows_left_ = operand.depth - d0 - row;
      columns_left_ = operand.extent - e0 - chunk * 4;
    }
  }

  /// Starts the copies of the next tile along k. The tile starts at a multiple of 128 bytes: a key
  /// may then be applied to the address itself.
  __device__ void fill(const float* tile) {
    const float* from = source_;
    const uint32_t to = shared_address(tile + offset_);
    const int count = min(max(columns_left_, 0), 4);
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      copy_chunk((to ^ (Layout::key(i * kRowStep) * 16)) + i * kRowStep * Layout::kPitch * 4, from,
                 i * kRowStep < rows_left_ ? count : 0);
      from += row_step_;
    }
    if constexpr (kMajor == Major::kK) {
      source_ += kDepth;
      columns_left_ -= kDepth;
    } else {
      source_ = from;
      rows_left_ -= kDepth;
    }
  }

 private:
  static constexpr int kRowChunks = (kMajor == Major::kK ? kDepth : kExtent) / 4;
  static constexpr int kRows = kMajor == Major::kK ? kExtent : kDepth;
  static constexpr int kRowStep = kThreads / kRowChunks;
  static constexpr int kCopies = kRows / kRowStep;
  static_assert(kThreads % kRowChunks == 0 && kRows % kRowStep == 0 &&
                (kRowStep & (kRowStep - 1)) == 0);

  /// The first `count` elements of the chunk exist, 0 to 4. Nothing is read from where nothing
  /// exists, so the address may be anything.
  static __device__ void copy_chunk(uint32_t to, const float* from, int count) {
    if constexpr (kVectorized) {
      copy16_async(to, from, count * 4);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        copy4_async(to + j * 4, from + j, j < count ? 4 : 0);
      }
    }
  }

  const float* source_;
  int64_t row_step_;
  int offset_;
  int rows_left_;
  int columns_left_;
};

/// The same for a K-major operand whose tile is to be MN-major: every element is copied alone, to
/// where the transpose has it.
template <int kExtent, int kDepth, int kThreads, int kPitch>
class TransposingStager {
 public:
  static constexpr int kFloats = kPitch * kDepth;

  __device__ TransposingStager(const Operand<Major::kK>& operand, int e0, int d0) {
    const auto [row, k] = layout::transposing_share(static_cast<int>(threadIdx.x));
    source_ = operand.address(e0 + row, d0 + k);
    row_step_ = kRowStep * operand.stride();
    offset_ = layout::outer_product_offset<kPitch>(row, k);
    rows_left_ = operand.extent - e0 - row;
    depth_left_ = operand.depth - d0 - k;
  }

  __device__ void fill(const float* tile) {
    const float* from = source_;
    const uint32_t to = shared_address(tile + offset_);
#pragma unroll
    for (int i = 0; i < kExtent / kRowStep; ++i) {
      const int depth = i * kRowStep < rows_left_ ? depth_left_ : 0;
#pragma unroll
      for (int k = 0; k < kDepth; k += 8) {
        copy4_async(to + (i * kRowStep + k * kPitch) * 4, from + k, k < depth ? 4 : 0);
      }
      from += row_step_;
    }
    source_ += kDepth;
    depth_left_ -= kDepth;
  }

 private:
  static constexpr int kRowStep = kThreads / 32 * 4;
  static_assert(kExtent % kRowStep == 0 && kDepth % 8 == 0);

  const float* source_;
  int64_t row_step_;
  int offset_;
  int rows_left_;
  int depth_left_;
};

}  // namespace lockstep::cuda
