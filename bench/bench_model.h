#pragma once

#include <cstdint>
#include <string_view>

#include "core/model/gpt_config.h"

namespace lockstep {

/// A model whose shapes are measured, and what one rank works on at a time.
struct BenchModel {
  GptConfig config;
  int64_t batch = 0;  ///< sequences of config.block_size

  int64_t tokens() const { return batch * config.block_size; }
};

/// "char-cpu" (nanoGPT's CPU recipe, one of two ranks), "char" (its GPU recipe) or "124m" (GPT-2).
/// Throws UsageError for another word.
BenchModel bench_model(std::string_view name);

}  // namespace lockstep
