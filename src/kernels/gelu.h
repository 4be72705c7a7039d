#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// Which form of GELU (Hendrycks and Gimpel, 2016): GPT-2 and llm.c use the tanh approximation,
/// nanoGPT the exact erf.
///   kTanh  x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
///   kErf   x/2 (1 + erf(x / sqrt 2))
enum class Gelu : uint8_t { kTanh, kErf };

/// What options and checkpoints call it.
constexpr std::string_view gelu_name(Gelu form) {
  return form == Gelu::kErf ? "erf" : "tanh";
}

}  // namespace lockstep
