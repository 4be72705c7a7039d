#pragma once

#include <cuda.h>

#include <cstdint>

namespace lockstep::cuda {

/// Describes a row-major matrix (rows, columns) to the tensor memory accelerator, which hands out
/// boxes of box_rows x 32 elements: rounded to TF32, each row 128 bytes, under the 128-byte
/// swizzle, zeros outside of the matrix. data and rows start at multiples of 16 bytes.
CUtensorMap tf32_tensor_map(const float* data, int64_t rows, int64_t columns, int box_rows);

}  // namespace lockstep::cuda
