#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep {

/// When a step sums its gradients: beside backward or behind it.
enum class Schedule : uint8_t { kBeside, kBehind };

template <class T>
struct BySchedule {
  T beside;
  T behind;

  T& operator[](Schedule schedule) { return schedule == Schedule::kBeside ? beside : behind; }
};

/// Finds by trial which schedule of a step is faster: its first steps take either in turns, and
/// what ranks measured decides. Pure: all ranks that call the same decide the same, since they
/// decide by a mean over all. Steps are counted from the begin of the process.
class ScheduleTrial {
 public:
  /// What a step that is enqueued cannot know: the results of the kLag steps before it.
  static constexpr int64_t kLag = 2;

  struct Outcome {
    Schedule chosen = Schedule::kBeside;
    double gain = 0;  ///< seconds that it takes less of a step, by the mean of all ranks
  };

  /// Without `on`, or before it is decided, kBeside is taken.
  explicit ScheduleTrial(bool on) : on_(on) {}

  /// What step `index` takes.
  Schedule schedule(int64_t index) const;
  /// What step `index` took on this rank.
  void add(int64_t index, double seconds);
  /// What this rank tells the others in step `index`: how many seconds more a step takes behind
  /// than beside. 0 in all steps but one.
  float behind_less_beside(int64_t index) const;
  /// The mean of what all ranks told in step `index`; the outcome if that step decides.
  std::optional<Outcome> decide(int64_t index, double mean);

 private:
  bool on_;
  Schedule chosen_ = Schedule::kBeside;
  BySchedule<std::vector<double>> seconds_;  ///< of steps
};

}  // namespace lockstep
