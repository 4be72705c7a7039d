#include "comm/cuda/peer_all_reduce.h"

#include <cuda_runtime_api.h>

#include <memory>

#include "comm/cuda/peer_kernels.h"
#include "core/base/error.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

/// Where the parts of each rank's PeerMemory begin, in bytes.
struct Layout {
  Layout(int ranks, int64_t window_elements, bool copies)
      : counts(aligned(sizeof(PeerWords))),
        slots(counts + aligned(sizeof(PeerCounts))),
        window(slots + message_slot_bytes(ranks)),
        copy_words(window + window_bytes(window_elements)),
        staging(copy_words + (copies ? aligned(sizeof(CopyWords)) : 0)),
        end(staging + (copies ? window_bytes(window_elements) : 0)) {}

  static int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
  /// Whole packs: the last one is read whole.
  static int64_t window_bytes(int64_t elements) {
    return aligned(elements * static_cast<int64_t>(sizeof(float)));
  }

  int64_t counts;
  int64_t slots;
  int64_t window;
  int64_t copy_words;  ///< with copies, as staging
  int64_t staging;
  int64_t end;
};

}  // namespace

PeerAllReduce::PeerAllReduce(Bootstrap& bootstrap, const PeerTable& peers, int64_t window_elements,
                             WaitLimit limit, bool copies)
    : window_elements_(window_elements),
      memory_(bootstrap, peers, Layout(bootstrap.world_size(), window_elements, copies).end) {
  const int ranks = bootstrap.world_size();
  const Layout layout(ranks, window_elements, copies);
  LOCKSTEP_CHECK(ranks >= 2 && ranks <= kMostPeerRanks, "{} ranks", ranks);
  LOCKSTEP_CHECK(ranks == 2 || !copies, "{} ranks do not sum by copies", ranks);
  everyone_.ranks = ranks;
  everyone_.rank = bootstrap.rank();
  everyone_.limit = limit;
  everyone_.counts = reinterpret_cast<PeerCounts*>(memory_.of(everyone_.rank) + layout.counts);
  for (int rank = 0; rank < ranks; ++rank) {
    std::byte* memory = memory_.of(rank);
    everyone_.words[rank] = reinterpret_cast<PeerWords*>(memory);
    everyone_.slots[rank] = reinterpret_cast<float*>(memory + layout.slots);
    everyone_.windows[rank] = reinterpret_cast<float*>(memory + layout.window);
  }
  CudaStream stream;
  const std::unique_ptr<PeerWords> words = first_peer_words();
  const PeerCounts counts = first_peer_counts();
  copy_bytes_from_host(stream, everyone_.words[everyone_.rank], words.get(), sizeof(PeerWords));
  copy_bytes_from_host(stream, everyone_.counts, &counts, sizeof(PeerCounts));
  static_assert(kNoData == 0xffffffffU, "every byte is the same");
  check_cuda(cudaMemsetAsync(everyone_.slots[everyone_.rank], 0xff,
                             static_cast<size_t>(message_slot_bytes(ranks)), stream.handle()),
             "emptying the slots of peer access");
  stream.synchronize();
  bootstrap.barrier();  // nobody writes what is still to be set
  if (copies) {
    const auto area_of = [&](int rank) {
      std::byte* memory = memory_.of(rank);
      return CopyArea{reinterpret_cast<CopyWords*>(memory + layout.copy_words),
                      reinterpret_cast<float*>(memory + layout.staging)};
    };
    copies_.emplace(bootstrap, everyone_, window_elements, area_of(everyone_.rank),
                    area_of(1 - everyone_.rank));
  }
}

void PeerAllReduce::check_range(Range range) const {
  LOCKSTEP_CHECK(range.begin >= 0 && range.end <= window_elements_, "[{}, {}) of {} elements",
                 range.begin, range.end, window_elements_);
}

PeerPlan PeerAllReduce::plan_for(Range range, SumLoad load,
                                 std::optional<PeerAlgorithm> algorithm) const {
  check_range(range);
  const int64_t bytes = range.size() * static_cast<int64_t>(sizeof(float));
  if (!algorithm && copies_ && worth_copying(bytes, load)) {
    algorithm = PeerAlgorithm::kCopies;
  }
  return plan_peer_all_reduce(everyone_.ranks, bytes, load, algorithm);
}

bool PeerAllReduce::push(CudaStream& stream, Range range, int bucket, SumLoad load) {
  if (range.empty() || !copies_ || !copies_->has_room()) {
    return false;
  }
  const PeerPlan plan = forced_.value_or(plan_for(range, load));
  const bool last = load == SumLoad::kAlone && copies_->under_way();
  if (plan.algorithm != PeerAlgorithm::kCopies && !last) {
    return false;
  }
  copies_->push(stream, range, bucket, load);
  return true;
}

void PeerAllReduce::finish(CudaStream& stream) {
  if (copies_) {
    copies_->finish(stream);
  }
}

void PeerAllReduce::all_reduce(CudaStream& stream, Range range, int bucket, SumLoad load) {
  if (range.empty()) {
    return;
  }
  // A round that is under way is another stream's to end.
  const bool under_way = copies_ && copies_->under_way();
  if (!under_way && push(stream, range, bucket, load)) {
    finish(stream);
    return;
  }
  PeerSum sum = everyone_;
  sum.range = range;
  sum.bucket = bucket;
  const PeerPlan plan = forced_.value_or(plan_for(range, load));
  switch (plan.algorithm) {
    case PeerAlgorithm::kOneShot:
      launch_one_shot(stream, sum, plan.blocks, plan.message_packs);
      return;
    case PeerAlgorithm::kPull:
      launch_pull(stream, sum, plan.blocks);
      return;
    case PeerAlgorithm::kPush:
      launch_push(stream, sum, plan.blocks);
      return;
    case PeerAlgorithm::kRing:
      launch_ring(stream, sum, plan.blocks);
      return;
    case PeerAlgorithm::kCopies:
      LOCKSTEP_CHECK(copies_, "sums by copies were not asked for");
      // It ends before the round that is under way does.
      launch_pull(stream, sum, plan_for(range, load, PeerAlgorithm::kPull).blocks);
      return;
  }
}

PeerSum PeerAllReduce::sum_for(CollectiveKind kind, Range range, int bucket) const {
  check_range(range);
  LOCKSTEP_CHECK(!copies_ || !copies_->under_way(), "sums by copies are not finished");
  PeerSum sum = everyone_;
  sum.range = range;
  sum.bucket = bucket;
  sum.kind = kind;
  return sum;
}

void PeerAllReduce::reduce_scatter(CudaStream& stream, Range range, int bucket, SumLoad load) {
  if (!range.empty()) {
    launch_reduce_scatter(stream, sum_for(CollectiveKind::kReduceScatter, range, bucket),
                          peer_shard_blocks(everyone_.ranks, range, load));
  }
}

void PeerAllReduce::all_gather(CudaStream& stream, Range range, int bucket, SumLoad load) {
  if (!range.empty()) {
    launch_all_gather(stream, sum_for(CollectiveKind::kAllGather, range, bucket),
                      peer_shard_blocks(everyone_.ranks, range, load));
  }
}

}  // namespace lockstep
