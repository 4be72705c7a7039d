#pragma once

#include <cstdint>

namespace lockstep {

/// Linear warm-up, then half a cosine down to min_lr (Loshchilov and Hutter, 2017), then constant:
/// nanoGPT's schedule.
struct LrSchedule {
  double learning_rate = 1e-3;
  double min_lr = 1e-4;
  int64_t warmup_iters = 100;
  int64_t lr_decay_iters = 5000;

  /// The rate of optimizer step `step`, counted from 0.
  double at(int64_t step) const;
};

}  // namespace lockstep
