#include <algorithm>
#include <cstring>
#include <string>

#include "comm/cuda/probe_stages.h"
#include "comm/pair_schedule.h"

// The figures of the peer probe: how fast each pair is, and the way through the host.

namespace lockstep {
namespace {

constexpr int kTries = 3;  // the best counts: others wait for something

/// So many that starting and stopping the clock does not show.
int copies_of(int64_t bytes) {
  return bytes < (1 << 20) ? 20 : 4;
}

}  // namespace

template <class Copy>
double ProbeStages::rate(int64_t bytes, const Copy& copy) {
  CudaEvent start;
  CudaEvent other_end;
  CudaEvent end;
  copy(bytes);
  await();
  bootstrap_.barrier();
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    start.record(stream_);
    second_.wait(start);
    for (int k = 0; k < copies_of(bytes); ++k) {
      copy(bytes);
    }
    other_end.record(second_);
    stream_.wait(other_end);
    end.record(stream_);
    await();
    const double moved = static_cast<double>(bytes) * copies_of(bytes);
    best = std::max(best, 1e-9 * moved / end.seconds_since(start));
  }
  return best;
}

void ProbeStages::rates() {
  const std::byte* const from = local_.view().data() + kProbeBulk.begin;
  for (int round = 0; round < pair_rounds(verdict_.ranks); ++round) {
    const int partner = pair_partner(rank_, round, verdict_.ranks);
    const auto to = [&] { return mapping_.of(partner) + kProbeBulk.begin; };
    for (size_t size = 0; size < kProbeRateBytes.size(); ++size) {
      const int64_t bytes = kProbeRateBytes[size];
      if (!goes_on(rank_, partner)) {
        bootstrap_.barrier();
        bootstrap_.barrier();
        continue;
      }
      PeerPair& pair = verdict_.pair(rank_, partner);
      pair.kernel[size] =
          rate(bytes, [&](int64_t part) { copy_by_kernel(stream_, to(), from, part); });
      pair.copies[size] = rate(bytes, [&](int64_t part) { copy_bytes(stream_, to(), from, part); });
    }
  }
  gather_rates();
}

void ProbeStages::staging() {
  const int64_t most = kProbeRateBytes.back();
  Buffer<CudaHost, std::byte> up(most);
  Buffer<CudaHost, std::byte> down(most);
  std::byte* const local = local_.view().data() + kProbeBulk.begin;
  std::byte* const own = mapping_.of(rank_) + kProbeBulk.begin;
  PeerRates mine{};
  for (size_t size = 0; size < kProbeRateBytes.size(); ++size) {
    mine[size] = rate(kProbeRateBytes[size], [&](int64_t bytes) {
      copy_bytes_to_host(stream_, up.view().data(), local, bytes);
      copy_bytes_from_host(second_, own, down.view().data(), bytes);
    });
  }
  const std::string bytes(reinterpret_cast<const char*>(mine.data()), sizeof(mine));
  for (const std::string& theirs : bootstrap_.all_gather(bytes)) {
    PeerRates rates{};
    std::memcpy(rates.data(), theirs.data(), sizeof(rates));
    verdict_.staging.push_back(rates);
  }
}

void ProbeStages::gather_rates() {
  struct Figures {
    PeerRates kernel;
    PeerRates copies;
    double latency_us;
  };
  std::string mine;
  for (int owner = 0; owner < verdict_.ranks; ++owner) {
    const PeerPair& pair = verdict_.pair(rank_, owner);
    const Figures figures{pair.kernel, pair.copies, pair.latency_us};
    mine.append(reinterpret_cast<const char*>(&figures), sizeof(figures));
  }
  const std::vector<std::string> all = bootstrap_.all_gather(mine);
  for (int accessor = 0; accessor < verdict_.ranks; ++accessor) {
    const char* row = all[static_cast<size_t>(accessor)].data();
    for (int owner = 0; owner < verdict_.ranks; ++owner) {
      Figures figures{};
      std::memcpy(&figures, row + static_cast<size_t>(owner) * sizeof(figures), sizeof(figures));
      PeerPair& pair = verdict_.pair(accessor, owner);
      pair.kernel = figures.kernel;
      pair.copies = figures.copies;
      pair.latency_us = figures.latency_us;
    }
  }
}

}  // namespace lockstep
