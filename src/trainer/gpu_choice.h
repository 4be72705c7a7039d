#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// The GPU that a rank would take: of those that its process sees, the one of its index among the
/// ranks of its host, counted around when there are fewer.
struct GpuChoice {
  std::string host_id;
  std::string host;  ///< name to print
  int visible = 0;   ///< GPUs that the rank's process sees
  std::string uuid;  ///< of the one that it takes
};

/// Throws UsageError, the same on all ranks, when two ranks would take one GPU and `share` does not
/// allow it. `ranks` is by rank.
void check_gpu_choices(const std::vector<GpuChoice>& ranks, bool share);

}  // namespace lockstep
