#pragma once

#include <optional>
#include <set>

#include "core/base/clock.h"

namespace lockstep {

/// Who has still to come to the end of the run; rank 0 keeps it.
class FinishRoll {
 public:
  FinishRoll(int world_size, Clock::duration limit) : limit_(limit) {
    for (int rank = 0; rank < world_size; ++rank) {
      unfinished_.insert(rank);
    }
  }

  void finish(int rank) { unfinished_.erase(rank); }
  bool complete() const { return unfinished_.empty(); }

  /// So much time has passed, in which this process ran. A rank that lives and is late by now:
  /// rank 0 alone may work on at the end, so that the limit begins with its own finish.
  std::optional<int> late(Clock::duration ran) {
    if (complete() || unfinished_.contains(0)) {
      return std::nullopt;
    }
    waited_ += ran;
    return waited_ >= limit_ ? std::optional(*unfinished_.begin()) : std::nullopt;
  }

 private:
  Clock::duration limit_;
  Clock::duration waited_{};
  std::set<int> unfinished_;
};

}  // namespace lockstep
