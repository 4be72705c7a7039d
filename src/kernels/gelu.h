#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace lockstep {

/// Which form of GELU (Hendrycks and Gimpel, 2016): GPT-2 and llm.c use the tanh approximation,
/// nanoGPT the exact erf.
enum class Gelu : uint8_t { kTanh, kErf };

/// The definitions that every backend's code is tested against.
inline double gelu_value(Gelu form, double x) {
  if (form == Gelu::kErf) {
    return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  }
  const double scale = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1.0 + std::tanh(scale * (x + 0.044715 * x * x * x)));
}
inline double gelu_derivative(Gelu form, double x) {
  if (form == Gelu::kErf) {
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
    return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density;
  }
  const double scale = std::sqrt(2.0 / std::numbers::pi);
  const double t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * scale * (1.0 + 3.0 * 0.044715 * x * x);
}

}  // namespace lockstep
