#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

/// How the next symbol is drawn.
struct SamplingOptions {
  double temperature = 0.8;  ///< divides the logits; 0: always the most likely symbol
  int64_t top_k = 200;       ///< draw among this many of the most likely
  uint64_t seed = 1337;
};

/// One symbol, drawn from softmax(logits / temperature) over the top_k most likely: a pure function
/// of its arguments. `index` numbers the draws of a text. Among equal logits the lower id is the
/// more likely. logits: (vocabulary), at least one.
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, uint64_t index);

}  // namespace lockstep
