#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// What a rank is doing; the word is printed when it is lost.
enum class Phase : uint8_t {
  kStart,
  kLoad,
  kForward,
  kBackward,
  kAllReduce,
  kOptimizer,
  kEvaluate,
  kSave,
  kShutdown
};
std::string_view phase_name(Phase phase);

/// What a rank was doing at some moment.
struct RankStatus {
  int64_t step = -1;  ///< -1: before the first one
  Phase phase = Phase::kStart;
  int bucket = -1;  ///< -1: none
};

/// "step 412, backward, bucket 3".
std::string describe(const RankStatus& status);

}  // namespace lockstep
