#include "comm/rank_status.h"

#include <fmt/core.h>

namespace lockstep {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kStart:
      return "start";
    case Phase::kLoad:
      return "load";
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kAllReduce:
      return "all-reduce";
    case Phase::kOptimizer:
      return "optimizer";
    case Phase::kEvaluate:
      return "evaluate";
    case Phase::kSave:
      return "save";
    case Phase::kShutdown:
      return "shutdown";
  }
  return "unknown phase";
}

std::string describe(const RankStatus& status) {
  std::string text;
  if (status.step >= 0) {
    text = fmt::format("step {}, ", status.step);
  }
  text += phase_name(status.phase);
  if (status.bucket >= 0) {
    text += fmt::format(", bucket {}", status.bucket);
  }
  return text;
}

}  // namespace lockstep
