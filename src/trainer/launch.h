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

/// Runs `start` on every rank; when it throws on any, the lowest of those ranks prints its error as
/// `program`, and then all throw AbortedError. Collective, whatever `start` throws: collectives
/// within it come before whatever may fail on some ranks only.
void start_together(Bootstrap& bootstrap, std::string_view program,
                    const std::function<void()>& start);
/// The same of connected ranks; their control plane has finished when it throws.
void start_together(const Group& group, std::string_view program,
                    const std::function<void()>& start);

/// Whether `config`, the same on all ranks, means GPUs: --device auto takes them when every rank
/// has one. Collective. Throws UsageError, on all ranks alike, when only some have; then, each rank
/// for itself, UnsupportedError without a usable GPU and UsageError for what a CPU has not.
bool runs_on_cuda(const Group& group, const TrainConfig& config);

/// Connects the ranks and trains on the device that `config` names. Collective.
ExitCode train(Bootstrap& bootstrap, const TrainConfig& config);

}  // namespace lockstep
