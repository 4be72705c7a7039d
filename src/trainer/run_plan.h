#pragma once

#include "core/data/dataset.h"
#include "core/model/gpt_config.h"
#include "core/model/param_table.h"
#include "trainer/batch_plan.h"
#include "trainer/config.h"
#include "trainer/continuation.h"
#include "trainer/evaluation.h"
#include "trainer/group.h"
#include "trainer/window_layout.h"

namespace lockstep {

/// Everything that is decided before memory is allocated and rings are connected: the data, the
/// shapes, and that all ranks agree on them.
struct RunPlan {
  /// Opens and checks the data. Collective; throws UsageError or CorruptError for what is wrong
  /// with the input, RanksDisagreeError when ranks differ in options, build, data or instruction
  /// set.
  RunPlan(const Group& group, const TrainConfig& config);

  RunIdentity identity(const TrainConfig& config) const;

  BatchPlan batch;
  Dataset dataset;
  GptConfig model;
  EvaluationPlan evaluation;
  WindowLayout window;
};

}  // namespace lockstep
