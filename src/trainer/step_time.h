#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/device/cuda_facts.h"
#include "core/model/gpt_config.h"

namespace lockstep {

/// What a step's work takes on one GPU, in milliseconds, by class; sums over ranks not counted.
struct StepTime {
  double products = 0;
  double attention = 0;
  double rows = 0;       ///< LayerNorm, column sums, loss, embeddings
  double optimizer = 0;  ///< and the norm of the gradient

  double total() const { return products + attention + rows + optimizer; }
};

/// The work of one step: `micro_steps` times forward and backward of `batch` sequences of the
/// model's context, and the optimizer.
struct StepWork {
  GptConfig model;
  int64_t batch = 1;
  int64_t micro_steps = 1;
  Precision precision = Precision::kFp32;
  int64_t update_ranks = 1;  ///< that share the update
};

/// Predicts a step's time: products by plan_microseconds, attention by rates that grow with the
/// context, the rest by the bytes that it moves. The rates are those of an H200; other GPUs with
/// compute capability 9.0 have them as far as they have its multiprocessors and memory. Pure. None
/// for other GPUs.
std::optional<StepTime> predict_step(const StepWork& work, const CudaFacts& facts);

/// One line for `trainer --plan`.
std::string step_time_report(const StepWork& work, const CudaFacts& facts);

}  // namespace lockstep
