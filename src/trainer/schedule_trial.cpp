#include "trainer/schedule_trial.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep {
namespace {

constexpr int64_t kWarmUp = 8;  ///< steps that capture graphs and touch memory first
/// Steps of one schedule in a row, of which the first ones are not measured: a step of the other
/// schedule is still under way beside them.
constexpr int64_t kBlock = 6;
constexpr int64_t kUnmeasured = 2;
constexpr int64_t kBlocks = 10;
constexpr int64_t kEnd = kWarmUp + kBlock * kBlocks;
constexpr int64_t kTelling = kEnd + ScheduleTrial::kLag;
constexpr int64_t kDecided = kTelling + ScheduleTrial::kLag;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

int ScheduleTrial::schedule(int64_t index) const {
  if (!on_ || index < kWarmUp || (index >= kEnd && index < kDecided)) {
    return 0;
  }
  return index >= kDecided ? chosen_ : static_cast<int>((index - kWarmUp) / kBlock % 2);
}

void ScheduleTrial::add(int64_t index, double seconds) {
  if (on_ && index >= kWarmUp && index < kEnd && (index - kWarmUp) % kBlock >= kUnmeasured) {
    seconds_[static_cast<size_t>(schedule(index))].push_back(seconds);
  }
}

float ScheduleTrial::told(int64_t index) const {
  return on_ && index == kTelling ? static_cast<float>(median(seconds_[1]) - median(seconds_[0]))
                                  : 0.0F;
}

std::optional<ScheduleTrial::Outcome> ScheduleTrial::decide(int64_t index, double mean) {
  if (!on_ || index != kTelling) {
    return std::nullopt;
  }
  chosen_ = mean < 0 ? 1 : 0;
  return Outcome{chosen_, std::abs(mean)};
}

}  // namespace lockstep
