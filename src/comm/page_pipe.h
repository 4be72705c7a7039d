#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>

#include "core/base/file.h"

namespace lockstep {

/// Sends memory over a non-blocking stream socket without copying it: the packets refer to its
/// pages (vmsplice(2) and splice(2)). Within a host the receiver's copy is then the only one. What
/// it reads is what the memory holds at that time, so the memory must not change until the receiver
/// says that it has it.
class PagePipe {
 public:
  /// Sends bytes from the start of `data`, as many as go without waiting, and returns how many; 0
  /// when the socket is full. The next call has what is left of the same data, until all is sent.
  /// `more`: other bytes follow at once. None when this does not work here or the connection is
  /// broken: send(2) works or says why, and this object is of no more use.
  std::optional<size_t> send(int socket, std::span<const std::byte> data, bool more);

 private:
  bool open();
  bool fill(std::span<const std::byte> data);

  UniqueFd out_;
  UniqueFd in_;
  size_t held_ = 0;  ///< bytes from the start of the data that are in the pipe
};

}  // namespace lockstep
