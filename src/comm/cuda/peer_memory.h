#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/peer_table.h"
#include "core/device/cuda_device.h"

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
  /// Unmaps, and frees this rank's memory, which no rank may still use or map.
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  PeerMemory(PeerMemory&&) = delete;
  PeerMemory& operator=(PeerMemory&&) = delete;

  /// Where this process sees the memory of `rank`; its own for its own rank.
  std::byte* of(int rank) const { return mapped_[static_cast<size_t>(rank)]; }
  int64_t bytes() const { return own_.size(); }

  /// Unmaps what others own. With a barrier behind it nobody frees what another still maps.
  void unmap() noexcept;

 private:
  int rank_;
  CudaBuffer<std::byte> own_;
  std::vector<std::byte*> mapped_;  ///< by rank; null: not mapped
};

}  // namespace lockstep
