#pragma once

namespace lockstep {

/// What a program's exit status means. docs/exit-codes.md says what to do about each.
enum class ExitCode : int {
  kDone = 0,
  kInternal = 1,       ///< a defect of Lockstep, or an error that no other code names
  kUsage = 2,          ///< bad flags, configuration or input, refused before any work
  kIo = 3,             ///< a file could not be read or written (disk full, permission, device)
  kCorrupt = 4,        ///< a checkpoint or shard is damaged
  kPeerLost = 5,       ///< another rank died or its connection broke
  kTimeout = 6,        ///< another rank stopped answering within the limit
  kOutOfMemory = 7,    ///< host or device memory could not be had
  kNonFinite = 8,      ///< the loss or a gradient became NaN or infinite
  kRanksDisagree = 9,  ///< ranks differ in configuration, data, build or parameters
  kUnsupported = 10,   ///< a device or feature is not in this build or on this machine
  kTooSlow = 11,       ///< a bench measured less than it was told to ask for
  kInterrupted = 75,   ///< stopped by a signal after saving a checkpoint; run again with --resume
};

}  // namespace lockstep
