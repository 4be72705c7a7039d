#include "trainer/progress.h"

namespace lockstep {
namespace {

constexpr double kDecay = 0.95;

}  // namespace

void Progress::step_done(double step_seconds, double elapsed_seconds) {
  ++next_;
  elapsed_ = elapsed_seconds;
  if (first_seconds_ == 0) {
    first_seconds_ = step_seconds;
    first_elapsed_ = elapsed_seconds;
    return;
  }
  ++counted_;
  mean_ = kDecay * mean_ + (1 - kDecay) * step_seconds;
  correction_ *= kDecay;
}

double Progress::tokens_per_second() const {
  const double seconds = counted_ == 0 ? first_seconds_ : mean_ / (1 - correction_);
  return seconds == 0 ? 0 : static_cast<double>(tokens_per_step_) / seconds;
}

double Progress::seconds_left() const {
  if (counted_ == 0) {
    return -1;
  }
  return static_cast<double>(last_ - next_) * (elapsed_ - first_elapsed_) /
         static_cast<double>(counted_);
}

}  // namespace lockstep
