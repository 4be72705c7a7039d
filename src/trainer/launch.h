#pragma once

#include <functional>

#include "comm/bootstrap.h"
#include "core/base/exit_code.h"
#include "trainer/config.h"

namespace lockstep {

/// Tags log lines with the rank, and keeps standard output for rank 0: results are its to print.
void set_output_rank(const Bootstrap& bootstrap);

/// Runs `start` on every rank before they are connected; when it throws on any, the first of those
/// ranks throws its error and the others AbortedError, so that one line is printed. Collective.
void start_together(Bootstrap& bootstrap, const std::function<void()>& start);

/// Connects the ranks and trains on the device that `config` names. Collective.
ExitCode train(Bootstrap& bootstrap, const TrainConfig& config);

}  // namespace lockstep
