#include "comm/cuda/peer_plan.h"

#include <algorithm>
#include <cstddef>

#include "core/base/arena_shard.h"

namespace lockstep {
namespace {

constexpr int64_t kKi = 1 << 10;
constexpr int64_t kMi = 1 << 20;
/// Below it a sum by few blocks holds backward up for less than what surrounds a copy.
constexpr int64_t kLeastCopiedBytes = 16 * kMi;
/// Of what blocks read or store in the windows of others.
constexpr int64_t kReachedBytesPerBlock = 16 * kKi;

int most_blocks(SumLoad load) {
  constexpr int kMostBeside = 16;
  return load == SumLoad::kBeside ? kMostBeside : kMostPeerBlocks;
}

int blocks_for(int64_t bytes, int64_t bytes_per_block, int most) {
  return static_cast<int>(std::clamp<int64_t>(bytes / bytes_per_block, 1, most));
}

/// Two ranks send each other as much in one trip as in two, so that one trip is best for all sizes
/// that the GPU is free for. It adds everything twice, and waits in many warps: beside other work,
/// and for more ranks, which would send everything to everyone, only small sizes are worth it.
/// Copies save a training step no time, and take as much memory as the window.
PeerAlgorithm fastest(int ranks, int64_t bytes, SumLoad load) {
  if (bytes * (ranks - 1) <= kMi || (ranks == 2 && load == SumLoad::kAlone)) {
    return PeerAlgorithm::kOneShot;
  }
  return ranks == 2 || bytes <= 4 * kMi ? PeerAlgorithm::kPull : PeerAlgorithm::kPush;
}

}  // namespace

std::optional<PeerAlgorithm> peer_algorithm(const std::string& word) {
  const auto found = std::find(kPeerAlgorithmWords.begin(), kPeerAlgorithmWords.end(), word);
  if (found == kPeerAlgorithmWords.begin() || found == kPeerAlgorithmWords.end()) {
    return std::nullopt;
  }
  return static_cast<PeerAlgorithm>(found - kPeerAlgorithmWords.begin() - 1);
}

const std::string& peer_algorithm_word(PeerAlgorithm algorithm) {
  return kPeerAlgorithmWords[static_cast<size_t>(algorithm) + 1];
}

bool worth_copying(int64_t bytes, SumLoad load) {
  return load == SumLoad::kBeside && bytes >= kLeastCopiedBytes;
}

PeerPlan plan_peer_all_reduce(int ranks, int64_t bytes, SumLoad load,
                              std::optional<PeerAlgorithm> algorithm) {
  const int most = most_blocks(load);
  PeerPlan plan;
  plan.algorithm = algorithm.value_or(fastest(ranks, bytes, load));
  switch (plan.algorithm) {
    case PeerAlgorithm::kOneShot:
      plan.blocks = blocks_for(bytes, 4 * kKi, most);
      plan.message_packs = bytes <= kMi ? 1 : bytes <= 2 * kMi ? 2 : 4;
      break;
    case PeerAlgorithm::kPull:
      plan.blocks = blocks_for(bytes, kReachedBytesPerBlock, most);
      break;
    case PeerAlgorithm::kPush:
    case PeerAlgorithm::kRing:
      plan.blocks = blocks_for(bytes, 8 * kKi, most);
      break;
    case PeerAlgorithm::kCopies:
      break;
  }
  return plan;
}

int peer_shard_blocks(int ranks, Range range, SumLoad load) {
  int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const ArenaShard shard{rank, ranks};
    most = std::max(most, shard.size(range.end) - shard.size(range.begin));
  }
  const int64_t bytes = most * static_cast<int64_t>(sizeof(float));
  return blocks_for(bytes, kReachedBytesPerBlock, most_blocks(load));
}

}  // namespace lockstep
