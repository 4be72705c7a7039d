#pragma once

#include <cstdint>

#include "comm/cuda/peer_words.h"
#include "comm/shm_region.h"

namespace lockstep {

/// Small sums, by one kernel: the packs of each thread that a block moves at a time, and the most
/// blocks. More of either did not make it faster on two H200.
inline constexpr int kChunkPacks = 2;
inline constexpr int kMostExchangeBlocks = 64;

/// What one block shows the other rank's block of the same number: one chunk, in one of two places
/// in turn, so that the next can be written before the last was read.
struct Mailbox {
  float values[2][kChunkPacks * kPeerThreads * kPackElements];
};

/// Large sums, by copy engines: three MiB take one 65 microseconds, which is long beside what the
/// steps around a piece cost and short beside a bucket.
inline constexpr int64_t kMostPieceElements = 3 << 18;
/// The first piece of a round, with which nothing overlaps.
inline constexpr int64_t kFirstPieceElements = 1 << 18;
inline constexpr int kPieceSlots = 4;

/// What one of two ranks shows the other's GPU, in memory of the host.
struct StagedRegion {
  PeerWords words;
  Mailbox mailboxes[kMostExchangeBlocks];
  float pieces[kPieceSlots][kMostPieceElements];
};
inline constexpr int64_t kStagedRegionElements = sizeof(StagedRegion) / sizeof(float);

/// A StagedRegion in memory that processes share, page-locked for the GPU of this one.
class PinnedRegion {
 public:
  /// `memory` has a window of kStagedRegionElements.
  explicit PinnedRegion(ShmRegion memory);
  ~PinnedRegion();
  PinnedRegion(const PinnedRegion&) = delete;
  PinnedRegion& operator=(const PinnedRegion&) = delete;
  PinnedRegion(PinnedRegion&&) = delete;
  PinnedRegion& operator=(PinnedRegion&&) = delete;

  StagedRegion* operator->() const { return reinterpret_cast<StagedRegion*>(memory_.window()); }

 private:
  ShmRegion memory_;
};

}  // namespace lockstep
