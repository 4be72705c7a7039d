#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/dispatch.h"
#include "kernels/gelu.h"

namespace lockstep {

/// A matrix read in either direction: element (i, j) is data[i * row + j * column]; one of the two
/// strides is 1.
struct GemmOperand {
  const float* data = nullptr;
  int64_t row = 0;
  int64_t column = 0;
};

/// What happens to a finished element of the product, in the order of kernels/gemm.h. Null pointers
/// are steps left out. bias: (n); the matrices: (m, n), dense.
struct GemmEpilogue {
  const float* bias = nullptr;
  const float* residual = nullptr;
  std::optional<Gelu> gelu;
  float* gelu_derivative = nullptr;
  const float* factor = nullptr;
  bool accumulate = false;
};

/// c = epilogue(a · b), c dense: (m, n).
struct GemmProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  GemmOperand a;  ///< (m, k)
  GemmOperand b;  ///< (k, n)
  float* c = nullptr;
  GemmEpilogue epilogue;
};

/// Rows [row, row_end) and columns [column, column_end) of c.
struct GemmRectangle {
  int64_t row = 0;
  int64_t row_end = 0;
  int64_t column = 0;
  int64_t column_end = 0;
};

}  // namespace lockstep

// clang-format off
LOCKSTEP_PER_ISA(
/// Floats of scratch, aligned to 64 bytes, that gemm_rectangle needs.
int64_t gemm_scratch_size(const GemmProduct& product, const GemmRectangle& rectangle);

/// Computes one rectangle of c. An element's bits depend on the product's shape, not on the
/// rectangle that it lies in.
void gemm_rectangle(const GemmProduct& product, const GemmRectangle& rectangle, float* scratch);

/// c = epilogue(sum of `parts` dense (m, n) matrices that lie behind each other, in their order),
/// for one rectangle.
void gemm_sum_parts(const GemmProduct& product, const GemmRectangle& rectangle, const float* from,
                    int64_t parts);
)
// clang-format on
