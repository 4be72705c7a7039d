#pragma once

#include <functional>
#include <string_view>

#include "comm/bootstrap.h"

namespace lockstep {

/// Tags log lines with the rank, and keeps standard output for rank 0: results are its to print.
void set_output_rank(const Bootstrap& bootstrap);

/// Runs `start` on every rank; when it throws on any, the lowest of those ranks prints its error as
/// `program`, and then all throw AbortedError. Collective, whatever `start` throws: collectives
/// within it come before whatever may fail on some ranks only.
void start_together(Bootstrap& bootstrap, std::string_view program,
                    const std::function<void()>& start);

}  // namespace lockstep
