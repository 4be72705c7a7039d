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

/// What becomes of a matrix's elements on their way.
enum class TensorElements : uint8_t { kAsTheyAre, kRoundedToTf32 };

/// Describes a matrix to the tensor memory accelerator, which hands out boxes of box_rows x 32
/// elements: each row 128 bytes, under the 128-byte swizzle, zeros outside of the matrix. data and
/// rows start at multiples of 16 bytes.
CUtensorMap tensor_map(const MappedMatrix& matrix, int box_rows, TensorElements elements);

}  // namespace lockstep::cuda
