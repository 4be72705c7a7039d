#pragma once

#include <cstdint>

namespace lockstep {

/// How GPUs of one host sum a range over peer access. All give the same bits.
enum class PeerAlgorithm : uint8_t {
  kPull,  ///< each rank reads everyone's values of its share of the range, adds, and stores the sum
          ///< at everyone: two waits, whatever the size
};

/// One way to run one sum; the same on all ranks.
struct PeerPlan {
  PeerAlgorithm algorithm = PeerAlgorithm::kPull;
  int blocks = 1;  ///< of kPeerThreads threads

  friend bool operator==(const PeerPlan&, const PeerPlan&) = default;
};

inline constexpr int kMostPeerRanks = 8;
inline constexpr int kMostPeerBlocks = 64;
inline constexpr int kPeerThreads = 512;

/// The fastest way for `bytes` on `ranks` GPUs, as measured on two H200 joined by NVLink. Pure.
PeerPlan plan_peer_all_reduce(int ranks, int64_t bytes);

}  // namespace lockstep
