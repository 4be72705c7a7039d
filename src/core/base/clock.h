#pragma once

#include <chrono>

namespace lockstep {

/// Deadlines and durations use the steady clock only: a jump of the wall clock must not end a run.
using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A point in time after which a wait gives up.
class Deadline {
 public:
  explicit Deadline(Clock::duration limit) : limit_(limit), end_(Clock::now() + limit) {}
  bool passed() const { return Clock::now() >= end_; }
  Clock::time_point end() const { return end_; }
  double limit_seconds() const { return std::chrono::duration<double>(limit_).count(); }

 private:
  Clock::duration limit_;
  Clock::time_point end_;
};

}  // namespace lockstep
