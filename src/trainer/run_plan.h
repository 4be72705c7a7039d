#pragma once

#include <map>
#include <string>

#include "core/data/dataset.h"
#include "core/model/gpt_config.h"
#include "core/model/param_table.h"
#include "trainer/batch_plan.h"
#include "trainer/config.h"
#include "trainer/continuation.h"
#include "trainer/evaluation.h"
#include "trainer/memory_plan.h"
#include "trainer/window_layout.h"

namespace lockstep {

/// What a rank decides by itself before memory is allocated and rings are connected: the data and
/// the shapes.
struct RunPlan {
  /// Opens and checks the data. Throws UsageError or CorruptError for what is wrong with the input.
  RunPlan(const TrainConfig& config, int world_size);

  /// What must be equal on all ranks, by name: every option of `config`, from which the plan was
  /// made, but those about a rank's own host; the build; the data.
  std::map<std::string, std::string> shared_facts(const TrainConfig& config) const;
  RunIdentity identity(const TrainConfig& config) const;
  RunShape shape() const { return {model, batch, evaluation.batches, window.sharded()}; }

  BatchPlan batch;
  Dataset dataset;
  GptConfig model;
  EvaluationPlan evaluation;
  WindowLayout window;
};

}  // namespace lockstep
