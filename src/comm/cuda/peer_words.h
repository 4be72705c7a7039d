#pragma once

#include <cstdint>
#include <memory>

#include "comm/collective_kind.h"
#include "comm/cuda/collective_words.h"
#include "comm/cuda/peer_plan.h"
#include "core/base/range.h"

namespace lockstep {

/// Floats that one thread moves with one access. Packs are counted from the begin of the window.
inline constexpr int kPackElements = 4;

/// Counts begin shortly before they come round to 0, so that every run shows that they may.
inline constexpr uint32_t kFirstCount = 0U - 8U;

/// By what block b of every rank's grid waits for the blocks b of the others, and for no other
/// block: blocks need not be resident together. One line of memory each.
struct alignas(128) BlockFlags {
  uint32_t entered[kMostPeerRanks];  ///< raised by the peers: their window is ready
  uint32_t left[kMostPeerRanks];     ///< raised by the peers: they are done with this rank's window
};

/// The state of one warp's channels (peer_channel.cuh).
struct alignas(128) ChannelCounts {
  uint32_t sent[kMostPeerRanks];      ///< own: messages to each peer
  uint32_t received[kMostPeerRanks];  ///< own: messages from each peer
  uint32_t taken[kMostPeerRanks];     ///< raised by the peers: this rank's messages they have taken
};
inline constexpr int kPeerWarps = kPeerThreads / 32;
inline constexpr int kMessagePacks = 4;  ///< of 16 bytes, of each lane, at most

/// Of each channel, in the receiver's memory; a power of two. With few of them senders of large
/// sums wait to hear of free ones: 43 MiB between two H200 take 138 us with 4 and 134 with 16, for
/// which they take 66 MiB. Sums that fit into the slots need no fence. More ranks would take as
/// much for each of the others.
constexpr uint32_t message_slots(int ranks) {
  return ranks == 2 ? 16 : 4;
}

/// What the slots of all channels to a rank take, in bytes.
constexpr int64_t message_slot_bytes(int ranks) {
  constexpr int64_t kMessageBytes = int64_t{32} * kMessagePacks * 16;
  return int64_t{kMostPeerBlocks} * kPeerWarps * (ranks - 1) * message_slots(ranks) * kMessageBytes;
}

/// What a word of a slot holds that waits for data: a NaN that no arithmetic produces, and for
/// which senders write another one.
inline constexpr uint32_t kNoData = 0xffffffffU;

/// What the ranks tell each other: each rank's, in memory that all of them reach.
struct PeerWords {
  BlockFlags blocks[kMostPeerBlocks];
  ChannelCounts channels[kMostPeerBlocks][kPeerWarps];
  /// By the peers, in turn: which sum they are at, and of what.
  uint64_t headers[2][kMostPeerRanks];
};

/// What a rank keeps from one sum to the next, in its own GPU's memory.
struct PeerCounts {
  uint32_t meetings[kMostPeerBlocks];  ///< of each block with those of the same number elsewhere
  uint32_t sums;                       ///< done so far
  uint32_t ended;                      ///< not 0 once a wait was ended: no sum is told of any more
  uint64_t start_ns;                   ///< of the sum under way
  uint64_t busy_ns;                    ///< as CollectiveWords, which shows it to the host
};

/// As before the first sum.
std::unique_ptr<PeerWords> first_peer_words();
PeerCounts first_peer_counts();

/// What a kernel of a sum, or of another collective, knows, by value.
struct PeerSum {
  PeerWords* words[kMostPeerRanks];  ///< by rank, where this process sees them
  float* slots[kMostPeerRanks];      ///< by rank: of the channels to it
  float* windows[kMostPeerRanks];    ///< by rank
  PeerCounts* counts;                ///< this rank's
  int ranks;
  int rank;
  Range range;  ///< of the window; not empty
  int bucket;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  WaitLimit limit;
};

}  // namespace lockstep
