#pragma once

#include <functional>
#include <vector>

#include "core/device/cuda_device.h"
#include "sm_clock.h"

namespace lockstep {

/// Times several ways to do one thing on a GPU in turn, round after round, as replays of CUDA
/// graphs, and reads the SM clock on both sides of each sample.
class GraphTimer {
 public:
  struct Figures {
    std::vector<double> samples;  ///< seconds a call, one for each round
    unsigned lowest_mhz = 0;
    unsigned highest_mhz = 0;
    bool pinned = true;  ///< the clock was locked and never moved

    double seconds() const;  ///< the median
    /// "pinned", or "UNPINNED" to warn who reads the figure.
    const char* clock() const { return pinned ? "pinned" : "UNPINNED"; }
  };

  GraphTimer(CudaStream& stream, const SmClock& clock, double seconds)
      : stream_(stream), clock_(clock), seconds_(seconds) {}

  /// A body enqueues on the stream and may be captured. Goes on for `seconds` of wall time and at
  /// least five rounds; a sample repeats a short body until it takes about two milliseconds.
  std::vector<Figures> run(const std::vector<std::function<void()>>& bodies);

 private:
  CudaStream& stream_;
  const SmClock& clock_;
  double seconds_;
};

/// Median over rounds of the first's time over the second's.
double median_ratio(const GraphTimer::Figures& first, const GraphTimer::Figures& second);

}  // namespace lockstep
