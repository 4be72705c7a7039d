#pragma once

#include <cstdint>

namespace lockstep {

/// Speed and time left of a run, from what its steps took.
class Progress {
 public:
  /// A run from step `first` to `last` whose steps have `tokens_per_step` tokens over all ranks.
  Progress(int64_t first, int64_t last, int64_t tokens_per_step)
      : next_(first), last_(last), tokens_per_step_(tokens_per_step) {}

  /// A step took `step_seconds`; since the run began, `elapsed_seconds` have passed with everything
  /// (evaluation, saving). The first step, which warms caches, counts until there is a second.
  void step_done(double step_seconds, double elapsed_seconds);

  /// Exponential mean with a factor of 0.95 a step, corrected for its start (Kingma and Ba, 2015,
  /// section 3). 0 before the first step.
  double tokens_per_second() const;
  /// At the pace so far; negative before the second step.
  double seconds_left() const;

 private:
  int64_t next_;
  int64_t last_;
  int64_t tokens_per_step_;
  int64_t counted_ = 0;  ///< steps after the first
  double mean_ = 0;      ///< of seconds per step, not yet corrected
  double correction_ = 1;
  double first_seconds_ = 0;  ///< of the first step; 0 before it
  double first_elapsed_ = 0;
  double elapsed_ = 0;
};

}  // namespace lockstep
