#pragma once

#include <cuda.h>

#include <cstdint>

namespace lockstep::cuda {

/// A row-major matrix in memory, possibly a part of a larger one.
struct MappedMatrix {
  const float* data;
  int64_t rows;
  int64_t columns;
  int64_t pitch;  ///< elements from row to row
};

/// Describes a matrix to the tensor memory accelerator, which hands out boxes of box_rows x 32
/// elements: rounded to TF32, each row 128 bytes, under the 128-byte swizzle, zeros outside of the
/// matrix. data and rows start at multiples of 16 bytes.
CUtensorMap tf32_tensor_map(const MappedMatrix& matrix, int box_rows);

}  // namespace lockstep::cuda
