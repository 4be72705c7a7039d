#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "comm/cuda/gpu_word.h"
#include "comm/cuda/probe_stages.h"
#include "comm/pair_schedule.h"

// The stages of the peer probe in which a kernel runs on the owner's GPU while memory is written.

namespace lockstep {
namespace {

constexpr uint64_t kLiveWaitNs = 500'000'000;
constexpr uint32_t kLiveRounds = 1000;
constexpr uint32_t kManyBlocksRounds = 200;
// Two processes take turns on one GPU, and a message waits for a turn.
constexpr uint32_t kSharedGpuRounds = 8;
constexpr uint32_t kMarkedCopies = 2;  // each but the first over the one before it
constexpr int64_t kMarkAt = kProbeWindowBytes + kLiveBytes;

}  // namespace

LiveResults ProbeStages::play(int partner, int blocks, uint32_t rounds) {
  LivePlay play;
  play.own = mapping_.of(rank_) + kProbeWindowBytes;
  play.peer = mapping_.of(partner) + kProbeWindowBytes;
  play.own_rank = rank_;
  play.peer_rank = partner;
  play.blocks = blocks;
  play.rounds = rounds;
  play.epoch = epoch_;
  play.first = rank_ < partner;
  play.timeout_ns = kLiveWaitNs;

  auto* on_gpu = report_.view().data();
  set_zero_bytes(stream_, on_gpu, sizeof(LiveResults));
  play_live(stream_, play, reinterpret_cast<LiveResults*>(on_gpu)->data());
  LiveResults results;
  copy_bytes_to_host(stream_, host_report_.view().data(), on_gpu, sizeof(results));
  await();
  std::memcpy(&results, host_report_.view().data(), sizeof(results));
  return results;
}

void ProbeStages::live(int blocks) {
  const uint32_t most_rounds = blocks == 1 ? kLiveRounds : kManyBlocksRounds;
  std::vector<Found> found;
  for (int round = 0; round < pair_rounds(verdict_.ranks); ++round) {
    const int partner = pair_partner(rank_, round, verdict_.ranks);
    const bool plays = goes_on(rank_, partner) && goes_on(partner, rank_);
    LiveResults mine{};
    uint32_t rounds = most_rounds;
    set_zero_bytes(stream_, mapping_.of(rank_) + kProbeWindowBytes, kLiveBytes);
    await();
    bootstrap_.barrier();
    if (plays) {
      if (verdict_.shares_gpu(rank_) || verdict_.shares_gpu(partner)) {
        rounds = kSharedGpuRounds;
      }
      mine = play(partner, blocks, rounds);
    }
    const std::vector<std::string> all =
        bootstrap_.all_gather({reinterpret_cast<const char*>(&mine), sizeof(mine)});
    if (plays) {
      LiveResults theirs;
      std::memcpy(&theirs, all[static_cast<size_t>(partner)].data(), sizeof(theirs));
      judge_live(partner, blocks, rounds, mine, theirs, &found);
      const LiveResult& clock = rank_ < partner ? mine[0] : theirs[0];
      if (blocks == 1) {
        verdict_.pair(rank_, partner).latency_us =
            static_cast<double>(clock.nanoseconds) / (2e3 * (rounds - 1));
      }
    }
    if (goes_on(rank_, partner) && !plays) {
      PeerFinding untried;
      untried.fault = PeerFault::kUntried;
      found.push_back({rank_, partner, untried});
    }
    epoch_ += most_rounds + 1;
  }
  share(ProbeStage::kLive, found);
}

void ProbeStages::judge_live(int partner, int blocks, uint32_t rounds, const LiveResults& mine,
                             const LiveResults& theirs, std::vector<Found>* found) const {
  for (size_t block = 0; block < static_cast<size_t>(blocks); ++block) {
    const LiveResult& here = mine[block];
    const LiveCounts counts = rank_ < partner ? LiveCounts{here.seen, theirs[block].seen}
                                              : LiveCounts{theirs[block].seen, here.seen};
    if (counts.first < rounds) {
      const int first = std::min(rank_, partner);
      const int second = std::max(rank_, partner);
      const int accessor = lost_to_second(counts) ? first : second;
      PeerFinding late;
      late.fault = PeerFault::kLate;
      late.expected = counts.first + 1;
      found->push_back({accessor, accessor == first ? second : first, late});
    }
    if (here.wrong != 0) {
      const uint32_t epoch = epoch_ + here.wrong_round;
      const uint32_t right = probe_key(partner, rank_, epoch);
      const uint32_t stale = probe_key(partner, rank_, epoch - 1);
      found->push_back(
          {partner, rank_, finding_at(here.wrong_word, here.found, {right, right}, stale)});
    }
  }
}

void ProbeStages::begin_watch(int partner, ProbeContent expected) {
  const ArrivalCheck right;
  auto* on_host = host_report_.view().data();
  auto* on_gpu = report_.view().data();
  std::memcpy(on_host, &right, sizeof(right));
  copy_bytes_from_host(second_, on_gpu, on_host, sizeof(right));

  Arrival arrival;
  arrival.window = mapping_.of(rank_);
  arrival.expected = expected;
  arrival.mark = reinterpret_cast<const uint64_t*>(mapping_.of(rank_) + kMarkAt);
  arrival.awaited = probe_mark(partner, rank_, epoch_);
  arrival.timeout_ns = kLiveWaitNs;
  arrival.begun = begun_.view().data();
  arrival.epoch = epoch_;
  await_window(second_, arrival, reinterpret_cast<ArrivalCheck*>(on_gpu));
  await_while([&] {
    return load_word(*arrival.begun) != epoch_ &&
           cudaStreamQuery(second_.handle()) == cudaErrorNotReady;
  });
}

PeerFinding ProbeStages::end_watch(ProbeContent expected, uint32_t stale, uint32_t number) {
  ArrivalCheck check;
  auto* on_host = host_report_.view().data();
  copy_bytes_to_host(second_, on_host, report_.view().data(), sizeof(check));
  await();
  std::memcpy(&check, on_host, sizeof(check));
  PeerFinding finding;
  if (!check.window.right()) {
    finding = finding_at(check.window.index(), check.window.found(), expected, stale);
  } else if (check.late != 0) {
    finding.fault = PeerFault::kLate;
    finding.expected = number;
  }
  return finding;
}

// A copy and its mark, as of a piece of a sum, but its ends are not aligned.
void ProbeStages::live_copies() {
  std::byte* const local = local_.view().data();
  for (int round = 0; round < pair_rounds(verdict_.ranks); ++round) {
    const int partner = pair_partner(rank_, round, verdict_.ranks);
    ++epoch_;
    write_own(own_key(rank_));
    const uint32_t own_rest = own_key(rank_);
    const uint32_t their_rest = own_key(partner);
    for (uint32_t number = 1; number <= kMarkedCopies; ++number) {
      ++epoch_;
      std::vector<Found> found;
      const bool sends = goes_on(rank_, partner);
      const bool watches = goes_on(partner, rank_);
      const ProbeContent expected{probe_key(partner, rank_, epoch_), own_rest};
      if (sends) {
        const uint64_t mark = probe_mark(rank_, partner, epoch_);
        fill_window(stream_, local, their_rest);
        store_pieces(stream_, local, probe_key(rank_, partner, epoch_));
        copy_bytes_from_host(stream_, mark_.view().data(), &mark, sizeof(mark));
        await();
      }
      if (watches) {
        begin_watch(partner, expected);
      }
      bootstrap_.barrier();  // the partner's kernel runs
      if (sends) {
        copy_bytes(stream_, mapping_.of(partner) + kProbeSpan.begin, local + kProbeSpan.begin,
                   kProbeSpan.size());
        copy_bytes(stream_, mapping_.of(partner) + kMarkAt, mark_.view().data(), sizeof(uint64_t));
      }
      // Only now: what is enqueued behind a kernel may hold up copies that are enqueued later.
      if (watches) {
        const uint32_t stale = probe_key(partner, rank_, epoch_ - 1);
        found.push_back({partner, rank_, end_watch(expected, stale, number)});
      }
      await();
      share(ProbeStage::kLiveCopies, found);
    }
  }
}

}  // namespace lockstep
