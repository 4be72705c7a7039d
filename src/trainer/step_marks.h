#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/step.h"

namespace lockstep {

/// Which times of a step are taken. A mark costs the device a little.
enum class StepTiming : uint8_t {
  kNone,
  kWait,   ///< from the end of backward to the sums
  kParts,  ///< all of StepTimes
};

/// Points of a step by the device's clock: its begin, behind each micro-step's forward and
/// backward, behind the sums, its end.
template <class Device>
class StepMarks {
 public:
  using Stream = typename Device::Stream;

  StepMarks() = default;
  StepMarks(StepTiming timing, int64_t micro_steps)
      : timing_(timing),
        micro_steps_(micro_steps),
        events_(timing == StepTiming::kNone ? 0 : static_cast<size_t>(2 * micro_steps + 3)) {}

  void begin(Stream& stream) { mark_part(stream, 0); }
  void forward(Stream& stream, int64_t micro) { mark_part(stream, 2 * micro + 1); }
  void backward(Stream& stream, int64_t micro) {
    micro + 1 == micro_steps_ ? mark_wait(stream, computed()) : mark_part(stream, 2 * micro + 2);
  }
  void summed(Stream& stream) { mark_wait(stream, computed() + 1); }
  void end(Stream& stream) { mark_part(stream, computed() + 2); }

  /// Once the device has passed the marks, of which some must be taken.
  double wait_seconds() { return lap(computed() + 1); }

  /// Once the device has passed the marks. Zero unless all are taken.
  StepTimes times() {
    StepTimes times;
    if (timing_ != StepTiming::kParts) {
      return times;
    }
    for (int64_t micro = 0; micro < micro_steps_; ++micro) {
      times.forward += lap(2 * micro + 1);
      times.backward += lap(2 * micro + 2);
    }
    times.exposed = wait_seconds();
    times.optimizer = lap(computed() + 2);
    return times;
  }

 private:
  using Event = typename Device::Event;

  int64_t computed() const { return 2 * micro_steps_; }  ///< index of the last backward's mark

  void mark_part(Stream& stream, int64_t index) {
    if (timing_ == StepTiming::kParts) {
      events_[static_cast<size_t>(index)].mark(stream);
    }
  }
  void mark_wait(Stream& stream, int64_t index) {
    if (timing_ != StepTiming::kNone) {
      events_[static_cast<size_t>(index)].mark(stream);
    }
  }

  /// From the mark before `index` to it.
  double lap(int64_t index) {
    const auto mark = static_cast<size_t>(index);
    return events_[mark].seconds_since(events_[mark - 1]);
  }

  StepTiming timing_ = StepTiming::kNone;
  int64_t micro_steps_ = 0;
  std::vector<Event> events_;
};

}  // namespace lockstep
