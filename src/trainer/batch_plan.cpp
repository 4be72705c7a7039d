#include "trainer/batch_plan.h"

#include <string>

#include "core/base/error.h"

namespace lockstep {
namespace {

std::string nearest_multiples(int64_t value, int64_t factor) {
  const int64_t below = value / factor * factor;
  return below == 0 ? fmt::format("{}", factor) : fmt::format("{} or {}", below, below + factor);
}

/// `global` over `share` equal parts, the parts being what `what` says.
int64_t divide(int64_t global, int64_t share, const std::string& what) {
  if (global % share != 0) {
    throw UsageError(
        "a global batch of {} sequences cannot be split evenly over {}; "
        "the nearest --global-batch-size that can is {}",
        global, what, nearest_multiples(global, share));
  }
  return global / share;
}

/// Refuses a product that is too large, before it is computed.
BatchPlan checked(const BatchPlan& plan) {
  if (plan.batch_size * plan.accumulation_steps > kMostSequences / plan.world_size) {
    throw UsageError(
        "--batch-size {} x --gradient-accumulation-steps {} x {} ranks are more than {} sequences "
        "a step: lower one of them",
        plan.batch_size, plan.accumulation_steps, plan.world_size, kMostSequences);
  }
  return plan;
}

}  // namespace

BatchPlan plan_batch(int64_t batch_size, int64_t global_batch_size, int64_t accumulation_steps,
                     int world_size) {
  if (global_batch_size == 0 && batch_size != 0) {
    return checked({batch_size, accumulation_steps == 0 ? 1 : accumulation_steps, world_size});
  }
  const int64_t global = global_batch_size == 0 ? kDefaultGlobalBatchSize : global_batch_size;
  if (global < world_size) {
    throw UsageError(
        "{} ranks cannot share a global batch of {} sequences: start at most {} ranks or set "
        "--global-batch-size to {} or more",
        world_size, global, global, world_size);
  }
  if (batch_size == 0) {
    const int64_t accumulation = accumulation_steps == 0 ? 1 : accumulation_steps;
    const std::string what = accumulation == 1 ? fmt::format("{} ranks", world_size)
                                               : fmt::format("{} ranks x {} accumulation steps",
                                                             world_size, accumulation);
    return {divide(global, world_size * accumulation, what), accumulation, world_size};
  }
  if (accumulation_steps == 0) {
    const std::string what = fmt::format("{} ranks x a batch size of {}", world_size, batch_size);
    return {batch_size, divide(global, world_size * batch_size, what), world_size};
  }
  const BatchPlan plan = checked({batch_size, accumulation_steps, world_size});
  if (plan.global_batch_size() != global) {
    throw UsageError(
        "--batch-size {} x --gradient-accumulation-steps {} x {} ranks are {} sequences, not "
        "--global-batch-size {}: leave one of the options out",
        batch_size, accumulation_steps, world_size, plan.global_batch_size(), global);
  }
  return plan;
}

}  // namespace lockstep
