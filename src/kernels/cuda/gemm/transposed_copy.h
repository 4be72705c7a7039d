#pragma once

#include <cstdint>

#include "core/base/ceil_div.h"
#include "core/device/cuda_device.h"

namespace lockstep::cuda {

/// to (columns, rows) = from (rows, columns) transposed, of which rows are `pitch` elements apart;
/// all multiples of four, 16-byte aligned.
void transpose_matrix(CudaStream& stream, float* to, const float* from, int64_t rows,
                      int64_t columns, int64_t pitch);

/// How a LayerNorm's output follows from its input, row by row: (x - mean) * rstd * gamma + beta.
struct RowNorm {
  const float* mean;  ///< of each row
  const float* rstd;
  const float* gamma;  ///< of each column
  const float* beta;
};

/// The same of the norm's output, for x in `from`.
void transpose_normed(CudaStream& stream, float* to, const float* from, int64_t rows,
                      int64_t columns, const RowNorm& norm);

/// Rows and columns that a block transposes.
inline constexpr int kTransposeTile = 64;

/// Rows of partial sums that transpose_summed leaves.
constexpr int64_t transpose_sum_rows(int64_t rows) {
  return ceil_div(rows, kTransposeTile);
}

/// As transpose_matrix, and leaves the sums of each column over runs of its rows: `sums`
/// (transpose_sum_rows, columns), rows `pitch` elements apart as those of `from`.
void transpose_summed(CudaStream& stream, float* to, float* sums, const float* from, int64_t rows,
                      int64_t columns, int64_t pitch);

}  // namespace lockstep::cuda
