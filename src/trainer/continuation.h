#pragma once

#include "core/checkpoint/training_state.h"
#include "core/model/gpt_config.h"

namespace lockstep {

/// What a run must share with the checkpoint that it continues: its weights must fit, and its data
/// order must be the same.
struct RunIdentity {
  GptConfig model;
  uint64_t seed = 0;
  int64_t global_batch_size = 0;
  std::string dataset_fingerprint;
};

/// Throws UsageError that names the first field that differs, with both values and what to do.
/// `where` is the checkpoint's path.
void check_continues(const TrainingState& checkpoint, const RunIdentity& run,
                     const std::string& where);

}  // namespace lockstep
