#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "comm/control_plane.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "trainer/overlap.h"
#include "trainer/replica.h"
#include "trainer/step_record.h"

namespace lockstep {

/// Seconds that a step spent where, on this rank. Reading data counts as forward.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double exposed = 0;  ///< waiting for the sums after backward
  double optimizer = 0;

  double total() const { return forward + backward + exposed + optimizer; }
};

/// Adds the time since the last lap to one of the sums.
class LapTimer {
 public:
  void lap(double& sum) {
    const Clock::time_point now = Clock::now();
    sum += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  Clock::time_point last_ = Clock::now();
};

struct StepResult {
  double loss = 0;  ///< mean over the global batch
  double norm = 0;  ///< of its gradient, before clipping
  StepRecord::Flags flags;
  StepTimes times;
};

/// What stays the same from step to step.
template <class Device>
struct StepContext {
  Replica<Device>& replica;
  Overlap<Device>& overlap;
  ControlPlane& control;
  View<Device, float> window;
  StepRecord record;
  BatchPlan plan;
  int rank = 0;
  std::function<const HostBatch&()> next_batch;
};

/// The first thing that is not finite, as an error that is the same on every rank.
inline void check_finite(int64_t step, double loss, double norm) {
  if (!std::isfinite(loss) || !std::isfinite(norm)) {
    throw NonFiniteError(
        "step {}: the loss is {} and the gradient norm {}; no checkpoint was written after this. "
        "Lower --learning-rate or --grad-clip and --resume from the last one",
        step + 1, loss, norm);
  }
}

/// One optimizer step: the gradient of the mean loss over the global batch, summed over ranks, and
/// one AdamW update. `step` counts from 0. Collective; the result is equal on all ranks but for its
/// times. Throws NonFiniteError, on every rank alike; a norm that is not finite has updated
/// nothing.
template <class Device>
StepResult train_step(StepContext<Device>& context, int64_t step, double learning_rate,
                      StepRecord::Flags flags) {
  auto& [replica, overlap, control, window, record, plan, rank, next_batch] = context;
  auto& stream = replica.stream();
  const auto scale = static_cast<float>(1.0 / static_cast<double>(plan.micro_batches()));
  StepResult result;
  LapTimer timer;

  std::vector<float> facts = record.start(flags);
  copy_from_host(stream, window.subview(record.range()), facts.data());
  for (int64_t micro = 0; micro < plan.accumulation_steps; ++micro) {
    const bool last = micro + 1 == plan.accumulation_steps;
    control.set_phase(Phase::kForward);
    replica.upload(next_batch());
    const Range loss = record.loss(micro * plan.world_size + rank);
    replica.model().forward(stream, replica.tokens(), replica.targets(), scale,
                            window.subview(loss));
    timer.lap(result.times.forward);
    control.set_phase(Phase::kBackward);
    replica.model().backward(stream, micro > 0, last ? overlap.on_ready(stream) : nullptr);
    timer.lap(result.times.backward);
  }
  control.set_phase(Phase::kAllReduce);
  overlap.finish(stream);
  timer.lap(result.times.exposed);

  control.set_phase(Phase::kOptimizer);
  copy_to_host(stream, facts.data(), View<Device, const float>(window.subview(record.range())));
  AdamWStep scalars = replica.optimizer().scalars(step, learning_rate);
  replica.optimizer().step(stream, {&scalars, 1}, replica.parameters(), replica.gradients());
  double squared_norm = 0;
  copy_to_host(stream, &squared_norm, replica.optimizer().squared_gradient_norm());
  result.norm = std::sqrt(squared_norm);
  result.loss = record.mean_loss(facts);
  result.flags = record.flags(facts);
  check_finite(step, result.loss, result.norm);
  timer.lap(result.times.optimizer);
  return result;
}

}  // namespace lockstep
