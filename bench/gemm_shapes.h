#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm.h"

namespace lockstep {

/// One product to measure.
struct GemmShape {
  std::string name;  ///< what the product is in the model, e.g. "fc forward"
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Transpose trans_a = Transpose::kNo;
  Transpose trans_b = Transpose::kNo;

  double flop() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  /// "NN", "NT", "TN" or "TT", as BLAS writes it.
  std::string transposes() const;
};

/// Every product of one layer and of the output head, of forward (NT) and of both gradients (input:
/// NN, weight: TN), for one micro-step of one rank of a bench_model.
std::vector<GemmShape> model_gemm_shapes(std::string_view model);

/// The shape in each of the named cases: NN, NT, TN, TT or all.
std::vector<GemmShape> gemm_shapes(int64_t m, int64_t n, int64_t k, std::string_view transposes);

}  // namespace lockstep
