#pragma once

#include <functional>
#include <memory>

#include "core/base/file.h"

namespace boost::asio {
class io_context;
}

namespace lockstep {

namespace wire {
class Control;
}

/// One control connection: whole messages over an authenticated socket. Used on the thread that
/// runs `io` only; neither this nor `io` may be destroyed while that thread runs.
class ControlLink {
 public:
  enum class End : uint8_t { kClosed, kGarbled };

  struct Events {
    std::function<void(const wire::Control&)> on_message;
    /// The connection ended or broke, or carried what is no message; nothing comes after it.
    std::function<void(End)> on_end;
  };

  ControlLink(boost::asio::io_context& io, UniqueFd socket, Events events);
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;
  ControlLink(ControlLink&&) = delete;
  ControlLink& operator=(ControlLink&&) = delete;

  /// Sends in the order of calls, without waiting. Nothing happens after `end` or on_end.
  void send(const wire::Control& message);
  /// Whether everything sent so far has been taken by the system.
  bool idle() const;
  /// Nothing more is sent: the other end is told once everything before is on its way, and can
  /// still be heard.
  void end();
  /// False from on_end on.
  bool open() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
