#pragma once

#include <sys/types.h>

#include <vector>

#include "core/base/file.h"

namespace lockstep {

/// Watches the process that started this one, mpirun or its daemon, together with any wrapper
/// between, so that killing it leaves no rank behind. A process without such an ancestor, or on a
/// kernel without pidfd_open, watches nothing. A parent-death signal would not do: it fires when
/// the parent's *thread* ends, and a wrapper hides the launcher from it.
class LauncherWatch {
 public:
  LauncherWatch();

  bool watching() const { return !processes_.empty(); }
  /// Whether one of them has ended.
  bool gone() const;

 private:
  std::vector<UniqueFd> processes_;
};

}  // namespace lockstep
