#pragma once

#include <cstdint>

#include "comm/cuda/collective_words.h"
#include "comm/cuda/peer_plan.h"
#include "core/base/range.h"

namespace lockstep {

/// Counts begin shortly before they come round to 0, so that every run shows that they may.
inline constexpr uint32_t kFirstCount = 0U - 8U;

/// By what block b of every rank's grid waits for the blocks b of the others, and for no other
/// block: blocks need not be resident together. One line of memory each.
struct alignas(128) BlockFlags {
  uint32_t entered[kMostPeerRanks];  ///< raised by the peers: their window is ready
  uint32_t left[kMostPeerRanks];     ///< raised by the peers: they are done with this rank's window
  uint32_t count;                    ///< own: sums that this block has done
};

/// The begin of each rank's PeerMemory; the window follows at kWindowOffset.
struct PeerWords {
  BlockFlags blocks[kMostPeerBlocks];
  uint64_t busy_ns;  ///< own: as CollectiveWords, which shows it to the host
};

/// What a kernel of a sum knows, by value.
struct PeerSum {
  PeerWords* words[kMostPeerRanks];  ///< by rank, where this process sees them
  float* windows[kMostPeerRanks];    ///< by rank
  int ranks;
  int rank;
  Range range;  ///< of the window; not empty
  int bucket;
  WaitLimit limit;
};

}  // namespace lockstep
