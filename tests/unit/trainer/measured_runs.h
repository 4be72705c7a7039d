#pragma once

#include <cstdint>

#include "core/device/cuda_facts.h"
#include "core/model/gpt_config.h"

// The GPU, the models and the figures of docs/performance.md, for tests of what is predicted of
// them.

namespace lockstep {

inline CudaFacts h200() {
  CudaFacts facts;
  facts.name = "NVIDIA H200";
  facts.compute_capability = 90;
  facts.multiprocessors = 132;
  return facts;
}

constexpr GptConfig char_gpt(int64_t context) {
  return {.vocab_size = 65, .block_size = context, .n_layer = 6, .n_head = 6, .n_embd = 384};
}

inline constexpr GptConfig kGpt2 = {
    .vocab_size = 50257, .block_size = 1024, .n_layer = 12, .n_head = 12, .n_embd = 768};

struct MeasuredRun {
  GptConfig model;
  int64_t batch;
  Precision precision;
  double milliseconds;  ///< of a step
  double mib;           ///< that it took of the GPU
};

// docs/results/gpu-2026-11-30/steps-wgmma-attention.txt
inline constexpr MeasuredRun kMeasuredRuns[] = {{char_gpt(256), 16, Precision::kTf32, 2.08, 758},
                                                {char_gpt(256), 64, Precision::kTf32, 6.31, 2456},
                                                {char_gpt(256), 16, Precision::kFp32, 4.32, 760},
                                                {char_gpt(256), 64, Precision::kFp32, 15.2, 2464},
                                                {char_gpt(1024), 16, Precision::kTf32, 7.03, 2556},
                                                {char_gpt(2048), 16, Precision::kTf32, 15.6, 4918},
                                                {kGpt2, 32, Precision::kTf32, 103, 26028}};

}  // namespace lockstep
