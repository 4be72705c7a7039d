#pragma once

#include <cmath>
#include <numbers>

#include "kernels/gelu.h"

namespace lockstep::naive {

/// GELU and its derivative by their definitions, which the code of every backend is tested against.
template <class Real>
Real gelu(Gelu form, Real x) {
  if (form == Gelu::kErf) {
    return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<Real>));
  }
  const Real scale = std::sqrt(2 / std::numbers::pi_v<Real>);
  return x / 2 * (1 + std::tanh(scale * (x + Real(0.044715) * x * x * x)));
}

template <class Real>
Real gelu_derivative(Gelu form, Real x) {
  if (form == Gelu::kErf) {
    const Real density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
    return (1 + std::erf(x / std::numbers::sqrt2_v<Real>)) / 2 + x * density;
  }
  const Real scale = std::sqrt(2 / std::numbers::pi_v<Real>);
  const Real t = std::tanh(scale * (x + Real(0.044715) * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * Real(0.044715) * x * x);
}

}  // namespace lockstep::naive
