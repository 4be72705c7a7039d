#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "core/base/exit_code.h"

namespace lockstep {

/// Base of every error that Lockstep throws. Caught where something can be done about it, else in
/// `main` and at the top of threads; the exit code says which kind of failure it was. A message
/// says what was wrong, where, and what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// The run ended for a cause that the group has already printed in one line: `main` leaves with the
/// code and adds nothing.
class AbortedError : public Error {
  using Error::Error;
};

namespace internal {

/// An Error whose code is fixed by its type, with a message in fmt's syntax.
template <ExitCode Code>
class ErrorOf : public Error {
 public:
  template <class... Args>
  explicit ErrorOf(fmt::format_string<Args...> format, Args&&... args)
      : Error(Code, fmt::format(format, std::forward<Args>(args)...)) {}
};

}  // namespace internal

// One type per kind of failure, so that a caller can catch the one it can answer.
class InternalError : public internal::ErrorOf<ExitCode::kInternal> {
  using ErrorOf::ErrorOf;
};
class UsageError : public internal::ErrorOf<ExitCode::kUsage> {
  using ErrorOf::ErrorOf;
};
class IoError : public internal::ErrorOf<ExitCode::kIo> {
  using ErrorOf::ErrorOf;
};
class CorruptError : public internal::ErrorOf<ExitCode::kCorrupt> {
  using ErrorOf::ErrorOf;
};
class PeerLostError : public internal::ErrorOf<ExitCode::kPeerLost> {
  using ErrorOf::ErrorOf;
};
class TimeoutError : public internal::ErrorOf<ExitCode::kTimeout> {
  using ErrorOf::ErrorOf;
};
class OutOfMemoryError : public internal::ErrorOf<ExitCode::kOutOfMemory> {
  using ErrorOf::ErrorOf;
};
class NonFiniteError : public internal::ErrorOf<ExitCode::kNonFinite> {
  using ErrorOf::ErrorOf;
};
class RanksDisagreeError : public internal::ErrorOf<ExitCode::kRanksDisagree> {
  using ErrorOf::ErrorOf;
};
class UnsupportedError : public internal::ErrorOf<ExitCode::kUnsupported> {
  using ErrorOf::ErrorOf;
};

}  // namespace lockstep

/// Throws InternalError with the place when a condition that only a defect of the caller can break
/// does not hold.
#define LOCKSTEP_CHECK(condition, ...)                                                 \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      throw ::lockstep::InternalError("{}:{}: {}: {}", __FILE__, __LINE__, #condition, \
                                      ::fmt::format(__VA_ARGS__));                     \
    }                                                                                  \
  } while (false)
