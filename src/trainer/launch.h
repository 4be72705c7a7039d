#pragma once

#include <functional>
#include <string_view>

#include "comm/bootstrap.h"
#include "comm/start_together.h"
#include "core/base/exit_code.h"
#include "trainer/config.h"
#include "trainer/group.h"

namespace lockstep {

/// start_together of connected ranks; their control plane has finished when it throws.
void start_together(const Group& group, std::string_view program,
                    const std::function<void()>& start);

/// Whether `config`, the same on all ranks, means GPUs: --device auto takes them when every rank
/// has one. Collective. Throws UsageError, on all ranks alike, when only some have; then, each rank
/// for itself, UnsupportedError without a usable GPU and UsageError for what a CPU has not.
bool runs_on_cuda(const Group& group, const TrainConfig& config);

/// Connects the ranks and trains on the device that `config` names. Collective.
ExitCode train(Bootstrap& bootstrap, const TrainConfig& config);

}  // namespace lockstep
