#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

/// Finds by trial which of two schedules of a step is faster, 0 or 1: its first steps take either
/// in turns, and what ranks measured decides. Pure: all ranks that call the same decide the same,
/// since they decide by a mean over all. Steps are counted from the begin of the process.
class ScheduleTrial {
 public:
  /// What a step that is enqueued cannot know: the results of the kLag steps before it.
  static constexpr int64_t kLag = 2;

  struct Outcome {
    int chosen = 0;
    double gain = 0;  ///< seconds that it takes less of a step, by the mean of all ranks
  };

  /// Without `on`, or before it is decided, schedule 0 is taken.
  explicit ScheduleTrial(bool on) : on_(on) {}

  /// What step `index` takes.
  int schedule(int64_t index) const;
  /// What step `index` took on this rank.
  void add(int64_t index, double seconds);
  /// What this rank tells the others in step `index`: by how many seconds schedule 1 is slower. 0
  /// in all steps but one.
  float told(int64_t index) const;
  /// The mean of what all ranks told in step `index`; the outcome if that step decides.
  std::optional<Outcome> decide(int64_t index, double mean);

 private:
  bool on_;
  int chosen_ = 0;
  std::array<std::vector<double>, 2> seconds_;  ///< of steps, by schedule
};

}  // namespace lockstep
