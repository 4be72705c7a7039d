#pragma once

#include <cstdint>

#include "kernels/gelu.h"

namespace lockstep {

/// The architecture of a GPT: GPT-2's, with the output projection tied to the token embedding.
struct GptConfig {
  // No product of two sizes leaves 64 bits below these.
  static constexpr int64_t kMostContext = int64_t{1} << 24;
  static constexpr int64_t kMostLayers = 4096;
  static constexpr int64_t kMostHeads = 65536;
  static constexpr int64_t kMostChannels = 65536;

  int64_t vocab_size = 0;
  int64_t block_size = 256;
  int64_t n_layer = 6;
  int64_t n_head = 6;
  int64_t n_embd = 384;
  Gelu gelu = Gelu::kTanh;

  int64_t head_dim() const { return n_embd / n_head; }
  /// Rows of the token embedding: the vocabulary rounded up to whole cache lines of logits. Padding
  /// rows are zero and stay zero.
  int64_t padded_vocab() const { return (vocab_size + 15) / 16 * 16; }

  /// Throws UsageError that names the flag and the rule, e.g. n_embd not divisible by n_head.
  void validate() const;

  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

}  // namespace lockstep
