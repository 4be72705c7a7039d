#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// What a rank's process sees of its host's GPUs, as CUDA_VISIBLE_DEVICES leaves them.
struct VisibleGpus {
  std::string host_id;
  std::string host;                ///< name to print
  std::vector<std::string> uuids;  ///< in the order of the process
};

/// By rank, the index of the GPU that it takes among those it sees: the first that no rank before
/// it on its host takes. So ranks that see the same GPUs take them in turn, and a rank that sees
/// one of its own takes that.
///
/// When there is none left, a rank shares where `share` allows it, counted around; else UsageError,
/// the same on all ranks. `ranks` is by rank, and each sees at least one.
std::vector<int> choose_gpus(const std::vector<VisibleGpus>& ranks, bool share);

}  // namespace lockstep
