#pragma once

#include <cmath>

#include "comm/communicator.h"
#include "core/base/error.h"
#include "trainer/step_record.h"

namespace lockstep {

/// Seconds that a step spent where, by the device's clock. Reading data counts as forward.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double exposed = 0;  ///< waiting for the sums after backward
  double optimizer = 0;

  double total() const { return forward + backward + exposed + optimizer; }
};

/// What came out of one optimizer step: equal on all ranks but for the times.
struct StepResult {
  double loss = 0;  ///< mean over the global batch
  double norm = 0;  ///< of its gradient, before clipping
  StepRecord::Flags flags;
  double seconds = 0;  ///< that the run took for it: steps that overlap are counted once
  StepTimes times;     ///< zero unless asked for
  CommTimes comm;
};

/// The first thing that is not finite, as an error that is the same on every rank. `step` counts
/// from 0.
inline void check_finite(int64_t step, double loss, double norm) {
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    throw NonFiniteError(
        "step {}: the loss is {} and the gradient norm {}; no checkpoint was written after this. "
        "Lower --learning-rate or --grad-clip and --resume from the last one",
        step + 1, loss, norm);
  }
}

}  // namespace lockstep
