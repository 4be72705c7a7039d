#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/model/param_table.h"

/// Parameters and tokens from an integer formula that another language can repeat to the bit:
/// tests/parity/make_gpt_reference.py has the same lines. Values are multiples of 2^-18, exact in
/// float.
namespace lockstep {

/// FNV-1a, 32 bits.
constexpr uint32_t name_hash(std::string_view name) {
  uint32_t hash = 2166136261U;
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
  }
  return hash;
}

/// 16 well mixed bits of (name, index).
constexpr uint32_t formula_bits(std::string_view name, int64_t index) {
  uint32_t h = name_hash(name) + static_cast<uint32_t>(index) * 2654435769U;
  h = (h ^ (h >> 16)) * 0x45d9f3bU;
  h = (h ^ (h >> 16)) * 0x45d9f3bU;
  return (h ^ (h >> 16)) & 0xffffU;
}

/// Uniform in [-1/4, 1/4), around 1 for the weights of LayerNorm: far enough from where training
/// starts that every term of every gradient counts.
constexpr float formula_value(std::string_view name, int64_t index) {
  const auto centred = static_cast<float>(static_cast<int32_t>(formula_bits(name, index)) - 32768);
  const bool norm_weight = name.ends_with("ln_1.weight") || name.ends_with("ln_2.weight") ||
                           name.ends_with("ln_f.weight");
  return (norm_weight ? 1.0F : 0.0F) + centred / 131072.0F;
}

inline std::vector<float> formula_parameters(const ParamTable& table) {
  std::vector<float> arena(static_cast<size_t>(table.arena_size()));
  for (const ParamSpec& spec : table.specs()) {
    for (int64_t i = 0; i < spec.init_size; ++i) {
      arena[static_cast<size_t>(spec.range.begin + i)] = formula_value(spec.name, i);
    }
  }
  return arena;
}

/// `name` tells tokens from targets.
inline std::vector<int32_t> formula_tokens(std::string_view name, int64_t vocabulary,
                                           int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(formula_bits(name, i) % vocabulary));
  }
  return tokens;
}

}  // namespace lockstep
