#pragma once

#include <numbers>

namespace lockstep::cuda {

inline constexpr float kLog2E = std::numbers::log2e_v<float>;

/// 2^x to 2 units in the last place; results below 2^-126 are 0.
__device__ inline float exp2_approx(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace lockstep::cuda
