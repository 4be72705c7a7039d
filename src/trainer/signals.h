#pragma once

namespace lockstep {

/// From here on SIGINT, SIGTERM and SIGUSR1 ask for a stop at the next step boundary instead of
/// ending the process. A second SIGINT or SIGTERM ends it at once. A file size limit (`ulimit -f`)
/// becomes an error of the write that meets it. Call once.
void catch_stop_signals();

/// The signal that asked for a stop, or 0.
int stop_signal() noexcept;

}  // namespace lockstep
