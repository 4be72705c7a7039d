#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "core/base/error.h"
#include "trainer/schedule_trial.h"
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
  std::optional<ScheduleTrial::Outcome> trial;  ///< if this step has decided one
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

/// Throws RanksDisagreeError, the same on every rank, unless all ranks had the same parameters when
/// their fingerprints were last taken. `step` counts from 0.
inline void check_same_parameters(int64_t step, const std::vector<uint64_t>& fingerprints) {
  for (size_t rank = 1; rank < fingerprints.size(); ++rank) {
    if (fingerprints[rank] != fingerprints[0]) {
      throw RanksDisagreeError(
          "step {}: the parameters of rank {} ({:016x}) are not those of rank 0 ({:016x}): a sum "
          "or a memory has failed. No checkpoint was written after this; --resume from one before "
          "--check-interval steps",
          step + 1, rank, fingerprints[rank], fingerprints[0]);
    }
  }
}

}  // namespace lockstep
