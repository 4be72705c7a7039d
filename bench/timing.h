#pragma once

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <vector>

#include "core/base/clock.h"

namespace lockstep {

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::log(value);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

/// What a timer counts: processor time of the calling thread leaves out the time in which others
/// had the core, but only a body that runs on one thread can be timed so.
enum class TimerClock { kThread, kWall };

/// Times several ways to do one thing in turn, round after round, so that a disturbance of the
/// machine meets all of them alike.
class InterleavedTimer {
 public:
  /// Goes on for `seconds` and at least five rounds; a sample repeats a short body until it takes
  /// about `sample_seconds`.
  InterleavedTimer(TimerClock clock, double seconds, double sample_seconds = 1e-3)
      : clock_(clock), seconds_(seconds), sample_seconds_(sample_seconds) {}

  void run(const std::vector<std::function<void()>>& bodies) {
    samples_.assign(bodies.size(), {});
    std::vector<int> calls;
    for (const auto& body : bodies) {
      body();  // warms caches and scratch memory up
      const double once = std::max(time_of(body, 1), 1e-7);
      calls.push_back(std::clamp(static_cast<int>(sample_seconds_ / once), 1, 10000));
    }
    const auto start = Clock::now();
    for (int round = 0; round < kMinRounds || seconds_since(start) < seconds_; ++round) {
      for (size_t i = 0; i < bodies.size(); ++i) {
        samples_[i].push_back(time_of(bodies[i], calls[i]));
      }
    }
  }

  /// Median time of one call of a body.
  double seconds(size_t body) const { return median(samples_[body]); }

  /// Median over rounds of the first body's time over the second's.
  double ratio(size_t first, size_t second) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < samples_[first].size(); ++i) {
      ratios.push_back(samples_[first][i] / samples_[second][i]);
    }
    return median(ratios);
  }

 private:
  static constexpr int kMinRounds = 5;

  double now() const {
    timespec time = {};
    ::clock_gettime(clock_ == TimerClock::kThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                    &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  double time_of(const std::function<void()>& body, int calls) const {
    const double start = now();
    for (int i = 0; i < calls; ++i) {
      body();
    }
    return (now() - start) / calls;
  }

  TimerClock clock_;
  double seconds_;
  double sample_seconds_;
  std::vector<std::vector<double>> samples_;
};

}  // namespace lockstep
