#pragma once

#include <cstdint>

#include "comm/running_time.h"
#include "core/base/clock.h"

namespace lockstep {

/// How long the sum under way has been so, for a host that only looks now and then at what the GPU
/// shows of its sums. Time in which the process itself was stopped does not count.
class SumTime {
 public:
  explicit SumTime(Clock::time_point now) : running_(kLongestLook, now) {}

  /// The GPU shows `bucket` (-1: no sum) and the time that its sums took so far, which grows with
  /// the end of each. 0 when no sum is under way, or another one than at the last look.
  Clock::duration look(int bucket, uint64_t busy_ns, Clock::time_point now) {
    const Clock::duration passed = running_.tick(now);
    const bool same = bucket >= 0 && bucket == bucket_ && busy_ns == busy_ns_;
    under_way_ = same ? under_way_ + passed : Clock::duration::zero();
    bucket_ = bucket;
    busy_ns_ = busy_ns;
    return under_way_;
  }

 private:
  /// A look that comes later after the last one than twice this was kept from coming.
  static constexpr std::chrono::milliseconds kLongestLook{250};

  RunningTime running_;
  Clock::duration under_way_{};
  int bucket_ = -1;
  uint64_t busy_ns_ = 0;
};

}  // namespace lockstep
