#include "core/optim/lr_schedule.h"

#include <cmath>
#include <numbers>

namespace lockstep {

double LrSchedule::at(int64_t step) const {
  if (step < warmup_iters) {
    return learning_rate * static_cast<double>(step + 1) / static_cast<double>(warmup_iters + 1);
  }
  if (step >= lr_decay_iters) {
    return min_lr;
  }
  const double progress =
      static_cast<double>(step - warmup_iters) / static_cast<double>(lr_decay_iters - warmup_iters);
  return min_lr + 0.5 * (1.0 + std::cos(std::numbers::pi * progress)) * (learning_rate - min_lr);
}

}  // namespace lockstep
