#pragma once

#include <cstddef>

namespace lockstep {

/// The memory of all ranks of a host as one of them addresses it.
class PeerMapping {
 public:
  PeerMapping() = default;
  virtual ~PeerMapping() = default;
  PeerMapping(const PeerMapping&) = delete;
  PeerMapping& operator=(const PeerMapping&) = delete;
  PeerMapping(PeerMapping&&) = delete;
  PeerMapping& operator=(PeerMapping&&) = delete;

  /// Where this process sees the memory of `rank`, its own for its own rank. Asked anew for each
  /// use.
  virtual std::byte* of(int rank) = 0;
};

}  // namespace lockstep
