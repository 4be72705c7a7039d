#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/peer_table.h"

namespace lockstep {

/// One allocation of GPU memory on every rank of a host, each mapped into the address space of all
/// the others (CUDA IPC): kernels and copy engines of any of them can address it. Allocated and
/// mapped once for life, since a handle that is opened again may show memory that was freed.
/// That an address can be used does not prove that what is written there arrives: see PeerProbe.
class PeerMemory {
 public:
  /// Allocates `bytes`, zeroed, on the GPU that is current, and maps everyone else's. Collective;
  /// `bytes` is the same on all ranks. Throws UnsupportedError, the same on all ranks, with the
  /// pair and the reason when one cannot map another's; nothing stays mapped or allocated then.
  PeerMemory(Bootstrap& bootstrap, const PeerTable& peers, int64_t bytes);
  /// Unmaps. Without leave() this rank's memory stays allocated: others may be at work in it.
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  PeerMemory(PeerMemory&&) = delete;
  PeerMemory& operator=(PeerMemory&&) = delete;

  /// Where this process sees the memory of `rank`; its own for its own rank.
  std::byte* of(int rank) const { return mapped_[static_cast<size_t>(rank)]; }

  /// Unmaps what others own, and frees this rank's memory once all have done so: what another still
  /// maps must not be freed. Nothing here uses it any more. Collective; once `over` says so, or a
  /// rank is gone, it waits for nobody and the memory stays allocated to the end of the process.
  void leave(Bootstrap& bootstrap, const std::function<bool()>& over) noexcept;

 private:
  void unmap() noexcept;

  int rank_;
  int64_t bytes_;
  std::vector<std::byte*> mapped_;  ///< by rank; null: not mapped
};

}  // namespace lockstep
