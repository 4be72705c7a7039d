#pragma once

#include <algorithm>

#include "core/base/clock.h"

namespace lockstep {

/// Time in which this process itself ran, seen by a tick that should come every `interval`. While a
/// process is stopped or its machine suspended it hears nobody, and may blame nobody for that: a
/// tick that comes late counts for two intervals at most.
class RunningTime {
 public:
  RunningTime(Clock::duration interval, Clock::time_point now) : interval_(interval), last_(now) {}

  /// What counts of the time since the last tick.
  Clock::duration tick(Clock::time_point now) {
    const auto counted = std::min<Clock::duration>(now - last_, 2 * interval_);
    last_ = now;
    return counted;
  }

 private:
  Clock::duration interval_;
  Clock::time_point last_;
};

}  // namespace lockstep
