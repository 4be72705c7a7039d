#pragma once

#include <cstdint>

#include "core/base/range.h"
#include "trainer/batch_plan.h"
#include "trainer/step_record.h"

namespace lockstep {

/// Where everything that is summed over ranks lies in the communicator's window: the gradient
/// arena, the step record behind it, then one slot per evaluation batch.
struct WindowLayout {
  Range gradients;
  StepRecord record;
  Range evaluation;

  WindowLayout(int64_t arena_elements, const BatchPlan& plan, int64_t evaluation_batches)
      : gradients{0, arena_elements},
        record(arena_elements, plan.micro_batches(), plan.world_size),
        evaluation{record.range().end, record.range().end + evaluation_batches} {}

  int64_t elements() const { return evaluation.end; }
};

}  // namespace lockstep
