#pragma once

// From a problem's run-time facts to what kernels take.

#include <cstdint>

#include "kernels/cuda/gemm/majors.h"
#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/cuda/pack.cuh"

namespace lockstep::cuda {

template <Major kMajor>
Operand<kMajor> make_operand(const float* data, int64_t extent, int64_t depth) {
  const int64_t row = kMajor == Major::kK ? depth : extent;
  return {data, static_cast<int>(extent), static_cast<int>(depth), row % 4 == 0 && aligned16(data)};
}

}  // namespace lockstep::cuda
