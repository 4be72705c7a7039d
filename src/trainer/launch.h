#pragma once

#include <functional>
#include <string_view>

#include "comm/bootstrap.h"
#include "core/base/exit_code.h"
#include "trainer/config.h"
#include "trainer/group.h"

namespace lockstep {

/// Tags log lines with the rank, and keeps standard output for rank 0: results are its to print.
void set_output_rank(const Bootstrap& bootstrap);

/// Runs `start` on every rank before they are connected; when it throws on any, the first of those
/// ranks prints its error as `program`, and then all throw AbortedError. Collective.
void start_together(Bootstrap& bootstrap, std::string_view program,
                    const std::function<void()>& start);

/// Whether `config` means GPUs: --device auto takes them when every rank has one. Collective;
/// throws UsageError, on all ranks alike, when only some have.
bool runs_on_cuda(const Group& group, const TrainConfig& config);

/// Connects the ranks and trains on the device that `config` names. Collective.
ExitCode train(Bootstrap& bootstrap, const TrainConfig& config);

}  // namespace lockstep
