#include "comm/cuda/peer_all_reduce.h"

#include <algorithm>
#include <memory>

#include "comm/cuda/peer_kernels.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr int64_t kAlignment = 256;

constexpr int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr int64_t kWindowOffset = aligned(sizeof(PeerWords));

// Whole packs: the last one is read whole.
int64_t memory_bytes(int64_t window_elements) {
  return kWindowOffset + aligned(window_elements * static_cast<int64_t>(sizeof(float)));
}

}  // namespace

PeerAllReduce::PeerAllReduce(Bootstrap& bootstrap, const PeerTable& peers, int64_t window_elements,
                             WaitLimit limit)
    : window_elements_(window_elements), memory_(bootstrap, peers, memory_bytes(window_elements)) {
  const int ranks = bootstrap.world_size();
  LOCKSTEP_CHECK(ranks >= 2 && ranks <= kMostPeerRanks, "{} ranks", ranks);
  everyone_.ranks = ranks;
  everyone_.rank = bootstrap.rank();
  everyone_.limit = limit;
  for (int rank = 0; rank < ranks; ++rank) {
    everyone_.words[rank] = reinterpret_cast<PeerWords*>(memory_.of(rank));
    everyone_.windows[rank] = reinterpret_cast<float*>(memory_.of(rank) + kWindowOffset);
  }
  const auto words = std::make_unique<PeerWords>();
  for (BlockFlags& block : words->blocks) {
    std::fill(std::begin(block.entered), std::end(block.entered), kFirstCount);
    std::fill(std::begin(block.left), std::end(block.left), kFirstCount);
    block.count = kFirstCount;
  }
  CudaStream stream;
  copy_bytes_from_host(stream, everyone_.words[everyone_.rank], words.get(), sizeof(PeerWords));
  stream.synchronize();
  bootstrap.barrier();  // nobody raises a flag that is still to be set
}

void PeerAllReduce::all_reduce(CudaStream& stream, Range range, int bucket) {
  LOCKSTEP_CHECK(range.begin >= 0 && range.end <= window_elements_, "[{}, {}) of {} elements",
                 range.begin, range.end, window_elements_);
  if (range.empty()) {
    return;
  }
  PeerSum sum = everyone_;
  sum.range = range;
  sum.bucket = bucket;
  const PeerPlan plan = forced_.value_or(
      plan_peer_all_reduce(sum.ranks, range.size() * static_cast<int64_t>(sizeof(float))));
  switch (plan.algorithm) {
    case PeerAlgorithm::kPull:
      launch_pull(stream.handle(), sum, plan.blocks);
      return;
  }
}

}  // namespace lockstep
