#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"

namespace lockstep::cuda {

/// How a LayerNorm's output follows from its input, row by row: (x - mean) * rstd * gamma + beta.
struct RowNorm {
  const float* mean;  ///< of each row
  const float* rstd;
  const float* gamma;  ///< of each column
  const float* beta;
};

/// As transpose_matrix (launch.h), of the norm's output.
void transpose_normed(CudaStream& stream, float* to, const float* from, int64_t rows,
                      int64_t columns, const RowNorm& norm);

}  // namespace lockstep::cuda
