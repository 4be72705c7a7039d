#pragma once

namespace lockstep {

/// How the waits of the data plane learn that the run is over. ControlPlane, as far as they need
/// it.
class AbortSource {
 public:
  AbortSource() = default;
  virtual ~AbortSource() = default;
  AbortSource(const AbortSource&) = delete;
  AbortSource& operator=(const AbortSource&) = delete;
  AbortSource(AbortSource&&) = delete;
  AbortSource& operator=(AbortSource&&) = delete;

  virtual bool aborted() const noexcept = 0;
  /// Throws the cause when aborted.
  virtual void throw_if_aborted() const = 0;
  /// Gives a cause the time to arrive and throws it, or returns.
  virtual void await_cause() const = 0;
};

}  // namespace lockstep
