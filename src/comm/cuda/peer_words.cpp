#include "comm/cuda/peer_words.h"

#include <algorithm>
#include <iterator>

namespace lockstep {
namespace {

template <class Counts>
void begin_at_first(Counts& counts) {
  std::fill(std::begin(counts), std::end(counts), kFirstCount);
}

}  // namespace

std::unique_ptr<PeerWords> first_peer_words() {
  auto words = std::make_unique<PeerWords>();
  for (BlockFlags& block : words->blocks) {
    begin_at_first(block.entered);
    begin_at_first(block.left);
  }
  for (auto& block : words->channels) {
    for (ChannelCounts& warp : block) {
      begin_at_first(warp.sent);
      begin_at_first(warp.received);
      begin_at_first(warp.taken);
    }
  }
  for (auto& headers : words->headers) {
    begin_at_first(headers);
  }
  return words;
}

PeerCounts first_peer_counts() {
  PeerCounts counts{};
  begin_at_first(counts.meetings);
  counts.sums = kFirstCount;
  return counts;
}

}  // namespace lockstep
