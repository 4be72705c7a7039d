#pragma once

#include <cstdint>

#include "trainer/batch_plan.h"
#include "trainer/overlap.h"
#include "trainer/step_marks.h"

namespace lockstep {

struct StepOptions {
  BatchPlan batch;
  int rank = 0;
  Reduction reduction = Reduction::kOverlapped;
  bool trial = false;  ///< try Reduction::kAfterBackward too, and go on with what is faster
  int64_t bucket_elements = 1;
  int64_t check_interval = 0;  ///< steps between fingerprints of the parameters; 0: none
  bool graph = true;           ///< launch the step as a graph, where the device has them
  bool times = false;          ///< fill StepResult::times

  bool has_peers() const { return batch.world_size > 1; }
  /// Of each micro-batch's mean loss: their sum is that of the global batch.
  float gradient_scale() const {
    return static_cast<float>(1.0 / static_cast<double>(batch.micro_batches()));
  }
  /// Where the host does not wait for the sums itself, the device's clock tells how long it did.
  template <class Device>
  bool times_wait() const {
    return Device::kRunsBesideHost && has_peers();
  }
  template <class Device>
  StepTiming timing() const {
    const StepTiming least = times_wait<Device>() ? StepTiming::kWait : StepTiming::kNone;
    return times ? StepTiming::kParts : least;
  }
};

}  // namespace lockstep
