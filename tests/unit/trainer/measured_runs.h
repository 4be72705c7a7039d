#pragma once

#include <cstdint>

#include "core/device/cuda_facts.h"
#include "core/model/gpt_config.h"

// The GPU and the models of docs/performance.md, for tests of what is predicted of them.

namespace lockstep {

inline CudaFacts h200() {
  CudaFacts facts;
  facts.name = "NVIDIA H200";
  facts.compute_capability = 90;
  facts.multiprocessors = 132;
  return facts;
}

inline GptConfig char_gpt(int64_t context) {
  return {.vocab_size = 65, .block_size = context, .n_layer = 6, .n_head = 6, .n_embd = 384};
}

inline constexpr GptConfig kGpt2 = {
    .vocab_size = 50257, .block_size = 1024, .n_layer = 12, .n_head = 12, .n_embd = 768};

}  // namespace lockstep
