#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/sum_load.h"
#include "core/base/range.h"

namespace lockstep {

/// How GPUs of one host sum a range over peer access. All give the same bits.
enum class PeerAlgorithm : uint8_t {
  kOneShot,  ///< everyone sends its values to everyone, who adds them all: one trip
  kPull,     ///< each rank reads everyone's values of its share, adds, and stores at everyone
  kPush,     ///< each rank is sent everyone's values of its share, adds, and stores at everyone
  kRing,     ///< each rank sends to its successor alone: for links between neighbours
  kCopies,   ///< two ranks: copy engines send the values, which a kernel adds later
};

/// What command lines call them: "auto", which is none of them, and theirs in their order.
inline const std::vector<std::string> kPeerAlgorithmWords = {"auto", "one-shot", "pull",
                                                             "push", "ring",     "copies"};
std::optional<PeerAlgorithm> peer_algorithm(const std::string& word);
const std::string& peer_algorithm_word(PeerAlgorithm algorithm);

/// One way to run one sum; the same on all ranks.
struct PeerPlan {
  PeerAlgorithm algorithm = PeerAlgorithm::kPull;
  int blocks = 1;         ///< of kPeerThreads threads; not of copies
  int message_packs = 4;  ///< one-shot: of 16 bytes a lane, 1, 2 or 4

  friend bool operator==(const PeerPlan&, const PeerPlan&) = default;
};

inline constexpr int kMostPeerRanks = 8;
inline constexpr int kMostPeerBlocks = 132;  ///< an H200's multiprocessors
inline constexpr int kPeerThreads = 512;

/// The fastest way for `bytes` on `ranks` GPUs, or the fastest by one algorithm, as measured on two
/// H200 joined by NVLink. Never copies, unless asked for. Pure.
PeerPlan plan_peer_all_reduce(int ranks, int64_t bytes, SumLoad load = SumLoad::kAlone,
                              std::optional<PeerAlgorithm> algorithm = std::nullopt);

/// Of how many blocks of kPeerThreads threads a reduce-scatter or an all-gather of `range` is: by
/// the most elements that a rank owns of it, so that it is the same on all ranks. Pure.
int peer_shard_blocks(int ranks, Range range, SumLoad load);

/// Whether a sum is to be by copies where copies were asked for. Pure.
bool worth_copying(int64_t bytes, SumLoad load);

}  // namespace lockstep
