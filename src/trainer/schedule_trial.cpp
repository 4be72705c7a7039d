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

Schedule ScheduleTrial::schedule(int64_t index) const {
  if (!on_ || index < kWarmUp || (index >= kEnd && index < kDecided)) {
    return Schedule::kBeside;
  }
  if (index >= kDecided) {
    return chosen_;
  }
  return (index - kWarmUp) / kBlock % 2 == 0 ? Schedule::kBeside : Schedule::kBehind;
}

void ScheduleTrial::add(int64_t index, double seconds) {
  if (on_ && index >= kWarmUp && index < kEnd && (index - kWarmUp) % kBlock >= kUnmeasured) {
    seconds_[schedule(index)].push_back(seconds);
  }
}

float ScheduleTrial::behind_less_beside(int64_t index) const {
  return on_ && index == kTelling
             ? static_cast<float>(median(seconds_.behind) - median(seconds_.beside))
             : 0.0F;
}

std::optional<ScheduleTrial::Outcome> ScheduleTrial::decide(int64_t index, double mean) {
  if (!on_ || index != kTelling) {
    return std::nullopt;
  }
  chosen_ = mean < 0 ? Schedule::kBehind : Schedule::kBeside;
  return Outcome{chosen_, std::abs(mean)};
}

}  // namespace lockstep
