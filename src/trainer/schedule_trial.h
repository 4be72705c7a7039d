#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

/// Finds by trial which of two schedules of a step is faster, 0 or 1: its first steps take either
/// in turns, and what ranks measured decides. Pure: all ranks that call the same decide the same,
/// since they decide by a sum over all. Steps are counted from the begin of the process.
class ScheduleTrial {
 public:
  /// What a step that is enqueued cannot know: the results of the kLag steps before it.
  static constexpr int64_t kLag = 2;

  /// What was found: medians, in seconds, of this rank.
  struct Outcome {
    std::array<double, 2> seconds;
    int chosen = 0;
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
  /// The sum of what all ranks told in step `index`; the outcome if that step decides.
  std::optional<Outcome> decide(int64_t index, float sum);

 private:
  bool on_;
  int chosen_ = 0;
  std::array<std::vector<double>, 2> seconds_;  ///< of steps, by schedule
};

}  // namespace lockstep
