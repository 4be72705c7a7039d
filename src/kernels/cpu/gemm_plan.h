#pragma once

#include <cstdint>

namespace lockstep {

/// How a product is shared out. `k_parts` decides the bits and is a function of the shape alone;
/// the grid may follow the number of threads.
struct GemmPlan {
  int64_t k_parts = 1;  ///< parts of k, summed up apart, then added in order
  int64_t row_parts = 1;
  int64_t column_parts = 1;

  /// Rows and columns are dealt out in multiples of this: whole tiles along the columns of every
  /// instruction set.
  static constexpr int64_t kStep = 32;

  int64_t tasks() const { return k_parts * row_parts * column_parts; }
};

/// The plan of an (m, n, k) product for up to `threads` threads. m, n > 0.
GemmPlan plan_gemm(int64_t m, int64_t n, int64_t k, int threads);

/// First element of part `part` in [0, parts] when [0, size) is cut into `parts`, at multiples of
/// `step`.
constexpr int64_t part_begin(int64_t size, int64_t parts, int64_t step, int64_t part) {
  const int64_t steps = (size + step - 1) / step;
  const int64_t begin = part * steps / parts * step;
  return begin < size ? begin : size;
}

}  // namespace lockstep
