#pragma once

// Tiles in shared memory that asynchronous copies fill, of 16 bytes, or of 4 where rows are not
// aligned or elements change places: what the multi-stage kernels are fed by.

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
///
/// A tile can be filled at once, or in kParts parts with other work between the copies: begin(),
/// then copy(0) ... copy(kPartCopies - 1) and next_part(), for each part. Tiles start at multiples
/// of 128 bytes: a key may then be applied to the address itself.
template <Major kMajor, int kExtent, int kDepth, int kThreads, bool kVectorized, class Layout,
          int kParts = 1>
class TileStager {
  static constexpr int kRowChunks = (kMajor == Major::kK ? kDepth : kExtent) / 4;
  static constexpr int kRows = kMajor == Major::kK ? kExtent : kDepth;
  static constexpr int kRowStep = kThreads / kRowChunks;

 public:
  static constexpr int kBytes = Layout::kPitch * kRows * 4;
  static constexpr int kPartCopies = kRows / kRowStep / kParts;

  /// Of the tiles whose first element is (e0, d0), (e0, d0 + kDepth) ...
  __device__ TileStager(const Operand<kMajor>& operand, int e0, int d0)
      : row_step_(kRowStep * operand.stride()) {
    const int row = static_cast<int>(threadIdx.x) / kRowChunks;
    const int column = static_cast<int>(threadIdx.x) % kRowChunks * 4;
    offset_ = Layout::chunk(row, column / 4) * 4;
    if constexpr (kMajor == Major::kK) {
      next_source_ = operand.address(e0 + row, d0 + column);
      next_rows_ = operand.extent - e0 - row;
      next_columns_ = operand.depth - d0 - column;
    } else {
      next_source_ = operand.address(e0 + column, d0 + row);
      next_rows_ = operand.depth - d0 - row;
      next_columns_ = operand.extent - e0 - column;
    }
  }

  /// Starts the copies of the next tile along k.
  __device__ void fill(uint32_t tile) {
    begin(tile);
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int i = 0; i < kPartCopies; ++i) {
        copy(i);
      }
      next_part();
    }
  }

  /// Turns to the next tile along k.
  __device__ void begin(uint32_t tile) {
    to_ = tile + offset_;
    source_ = next_source_;
    columns_ = next_columns_;
    rows_ = next_columns_ > 0 ? next_rows_ : 0;
    if constexpr (kMajor == Major::kK) {
      next_source_ += kDepth;
      next_columns_ -= kDepth;
    } else {
      next_source_ += kParts * kPartCopies * row_step_;
      next_rows_ -= kDepth;
    }
  }

  /// Starts the i-th copy of the part. Where nothing exists, nothing is read: the address may be
  /// anything.
  __device__ void copy(int i) const {
    const uint32_t to = (to_ ^ chunk_key(i * kRowStep)) + i * kRowStep * kRowBytes;
    const float* from = source_ + i * row_step_;
    const bool row_exists = i * kRowStep < rows_;
    if constexpr (kVectorized) {
      copy16_async_or_zero(to, from, row_exists);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        copy4_async(to + j * 4, from + j, row_exists && j < columns_ ? 4 : 0);
      }
    }
  }

  __device__ void next_part() {
    to_ = (to_ ^ kPartKey) + kPartBytes;
    source_ += kPartCopies * row_step_;
    rows_ -= kPartRows;
  }

 private:
  static constexpr int kRowBytes = Layout::kPitch * 4;
  static constexpr int kPartRows = kPartCopies * kRowStep;
  static constexpr int kPartBytes = kPartRows * kRowBytes;
  static constexpr __host__ __device__ uint32_t chunk_key(int row) {
    return Layout::key(row) * 16;
  }
  static constexpr uint32_t kPartKey = chunk_key(kPartRows);
  static_assert(kThreads % kRowChunks == 0 && kRows % (kRowStep * kParts) == 0 &&
                (kRowStep & (kRowStep - 1)) == 0);
  static_assert(kParts == 1 || chunk_key(2 * kPartRows) == 0,
                "the key of every other part is none");

  int64_t row_step_;
  int offset_;  ///< bytes
  uint32_t to_;
  const float* source_;
  const float* next_source_;
  int rows_;  ///< from the part's first row to the matrix's edge
  int next_rows_;
  int columns_;
  int next_columns_;
};

/// The same for a K-major operand whose tile is to be MN-major: every element is copied alone, to
/// where the transpose has it.
template <int kExtent, int kDepth, int kThreads, int kPitch>
class TransposingStager {
 public:
  static constexpr int kBytes = kPitch * kDepth * 4;

  __device__ TransposingStager(const Operand<Major::kK>& operand, int e0, int d0) {
    const auto [row, k] = layout::transposing_share(static_cast<int>(threadIdx.x));
    source_ = operand.address(e0 + row, d0 + k);
    row_step_ = kRowStep * operand.stride();
    offset_ = layout::outer_product_offset<kPitch>(row, k) * 4;
    rows_left_ = operand.extent - e0 - row;
    depth_left_ = operand.depth - d0 - k;
  }

  __device__ void fill(uint32_t tile) {
    const float* from = source_;
    const uint32_t to = tile + offset_;
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
  int offset_;  ///< bytes
  int rows_left_;
  int depth_left_;
};

}  // namespace lockstep::cuda
