#pragma once

#include <string>

#include "core/data/dataset.h"
#include "core/model/gpt_config.h"
#include "core/model/param_table.h"
#include "trainer/batch_plan.h"
#include "trainer/config.h"
#include "trainer/continuation.h"
#include "trainer/evaluation.h"
#include "trainer/group.h"
#include "trainer/memory_plan.h"
#include "trainer/window_layout.h"

namespace lockstep {

/// What decides the bits of results on a device, and must be equal on all ranks.
struct Arithmetic {
  std::string name;  ///< "instruction set"
  std::string value;
};

/// Everything that is decided before memory is allocated and rings are connected: the data, the
/// shapes, and that all ranks agree on them.
struct RunPlan {
  /// Opens and checks the data. Collective; throws UsageError or CorruptError for what is wrong
  /// with the input, RanksDisagreeError when ranks differ in options, build, data or arithmetic.
  RunPlan(const Group& group, const TrainConfig& config, const Arithmetic& arithmetic);

  RunIdentity identity(const TrainConfig& config) const;
  RunShape shape() const { return {model, batch, evaluation.batches}; }

  BatchPlan batch;
  Dataset dataset;
  GptConfig model;
  EvaluationPlan evaluation;
  WindowLayout window;
};

}  // namespace lockstep
