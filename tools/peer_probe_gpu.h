#pragma once

#include <string>

#include "trainer/group.h"

namespace lockstep {

struct PeerProbeOptions {
  std::string json;  ///< path; empty: none
  bool share_gpu = false;
};

/// Probes the GPUs of the ranks and prints what was found, on rank 0. What the program returns:
/// whether peer access is used, claimed and not true, or not there. Collective.
int probe_gpus(const Group& group, const PeerProbeOptions& options);

}  // namespace lockstep
