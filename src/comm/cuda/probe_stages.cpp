#include "comm/cuda/probe_stages.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "comm/pair_schedule.h"
#include "core/base/clock.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr double kGpuSeconds = 10;  // for a GPU to finish a stage's work
// What the host reads back by a copy: the end of the large piece and what is behind it.
constexpr Range kHostLook{kProbeBulk.end - 1024, kProbeBulk.end + 3072};

template <class T>
std::string bytes_of_values(const T* values, size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}
template <class T>
std::vector<T> values_of_bytes(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

ProbeStages::ProbeStages(Bootstrap& bootstrap, PeerVerdict claims, PeerMapping& mapping)
    : bootstrap_(bootstrap),
      verdict_(std::move(claims)),
      mapping_(mapping),
      rank_(bootstrap.rank()),
      local_(kProbeWindowBytes),
      mark_(1),
      report_(sizeof(LiveResults)),
      host_report_(kHostLook.size()),
      begun_(1) {}

PeerVerdict ProbeStages::run() {
  stores(ProbeStage::kStores);
  stores(ProbeStage::kSecondEpoch);
  loads();
  copies();
  live(1);
  live(kLiveBlocks);
  live_copies();
  rates();
  staging();
  settle(&verdict_);
  return verdict_;
}

bool ProbeStages::goes_on(int accessor, int owner) const {
  return accessor >= 0 && owner >= 0 && verdict_.pair(accessor, owner).failed == ProbeStage::kNone;
}

uint32_t ProbeStages::own_key(int rank) const {
  return probe_key(rank, rank, epoch_);
}

void ProbeStages::await_while(const std::function<bool()>& busy) {
  const Clock::time_point start = Clock::now();
  while (busy()) {
    if (seconds_since(start) > kGpuSeconds) {
      throw TimeoutError("the GPU of rank {} did not finish a step of the peer probe in {} s",
                         rank_, kGpuSeconds);
    }
    std::this_thread::yield();
  }
}

void ProbeStages::await() {
  for (CudaStream* stream : {&stream_, &second_}) {
    await_while([&] { return cudaStreamQuery(stream->handle()) == cudaErrorNotReady; });
    stream->synchronize();
  }
}

void ProbeStages::write_own(uint32_t pieces) {
  fill_window(stream_, mapping_.of(rank_), pieces);
  await();
  bootstrap_.barrier();
}

PeerFinding ProbeStages::look(const std::byte* window, uint32_t pieces, uint32_t rest,
                              uint32_t stale) {
  const WindowCheck right;
  WindowCheck check;
  auto* on_host = host_report_.view().data();
  auto* on_gpu = report_.view().data();
  std::memcpy(on_host, &right, sizeof(right));
  copy_bytes_from_host(stream_, on_gpu, on_host, sizeof(right));
  check_window(stream_, window, {pieces, rest}, reinterpret_cast<WindowCheck*>(on_gpu));
  copy_bytes_to_host(stream_, on_host, on_gpu, sizeof(check));
  await();
  std::memcpy(&check, on_host, sizeof(check));
  if (check.right()) {
    return {};
  }
  return finding_at(check.index(), check.found(), {pieces, rest}, stale);
}

PeerFinding ProbeStages::look_from_host(uint32_t pieces, uint32_t rest, uint32_t stale) {
  auto* on_host = host_report_.view().data();
  copy_bytes_to_host(stream_, on_host, mapping_.of(rank_) + kHostLook.begin, kHostLook.size());
  await();
  for (int64_t index = kHostLook.begin / 4; index < kHostLook.end / 4; ++index) {
    uint32_t found = 0;
    std::memcpy(&found, on_host + 4 * index - kHostLook.begin, sizeof(found));
    if (found != probe_word(ProbeContent{pieces, rest}, index)) {
      return finding_at(index, found, {pieces, rest}, stale);
    }
  }
  return {};
}

void ProbeStages::stores(ProbeStage stage) {
  std::vector<Found> found;
  const int rounds = pair_rounds(verdict_.ranks);
  for (int round = 0; round < rounds; ++round) {
    const int partner = pair_partner(rank_, round, verdict_.ranks);
    ++epoch_;
    write_own(own_key(rank_));
    if (goes_on(rank_, partner)) {
      store_pieces(stream_, mapping_.of(partner), probe_key(rank_, partner, epoch_));
      await();
    }
    bootstrap_.barrier();
    if (goes_on(partner, rank_)) {
      const uint32_t pieces = probe_key(partner, rank_, epoch_);
      const uint32_t stale = probe_key(partner, rank_, epoch_ - static_cast<uint32_t>(rounds));
      PeerFinding finding = look(mapping_.of(rank_), pieces, own_key(rank_), stale);
      if (finding.fault == PeerFault::kNone) {
        finding = look_from_host(pieces, own_key(rank_), stale);
      }
      found.push_back({partner, rank_, finding});
    }
  }
  share(stage, found);
}

void ProbeStages::loads() {
  std::vector<Found> found;
  for (int round = 0; round < pair_rounds(verdict_.ranks); ++round) {
    const int partner = pair_partner(rank_, round, verdict_.ranks);
    ++epoch_;
    write_own(own_key(rank_));
    if (goes_on(rank_, partner)) {
      const uint32_t right = own_key(partner);
      const uint32_t stale = probe_key(partner, partner, epoch_ - 1);
      found.push_back({rank_, partner, look(mapping_.of(partner), right, right, stale)});
    }
    bootstrap_.barrier();  // before the next round writes what was read
  }
  share(ProbeStage::kLoads, found);
}

void ProbeStages::copy_pieces(std::byte* to, const std::byte* from) {
  for (const Range& piece : {kProbeHead, kProbeBulk, kProbeTail}) {
    copy_bytes(stream_, to + piece.begin, from + piece.begin, piece.size());
  }
}

void ProbeStages::copies() {
  std::vector<Found> found;
  std::byte* const local = local_.view().data();
  for (int round = 0; round < pair_rounds(verdict_.ranks); ++round) {
    const int partner = pair_partner(rank_, round, verdict_.ranks);
    ++epoch_;
    write_own(own_key(rank_));
    if (goes_on(rank_, partner)) {
      store_pieces(stream_, local, probe_key(rank_, partner, epoch_));
      copy_pieces(mapping_.of(partner), local);
      await();
    }
    bootstrap_.barrier();
    if (goes_on(partner, rank_)) {
      const uint32_t stale = probe_key(partner, rank_, epoch_ - 1);
      found.push_back(
          {partner, rank_,
           look(mapping_.of(rank_), probe_key(partner, rank_, epoch_), own_key(rank_), stale)});
    }

    ++epoch_;
    write_own(own_key(rank_));
    if (goes_on(rank_, partner)) {
      fill_window(stream_, local, own_key(rank_));
      copy_pieces(local, mapping_.of(partner));
      const uint32_t stale = probe_key(partner, partner, epoch_ - 1);
      found.push_back({rank_, partner, look(local, own_key(partner), own_key(rank_), stale)});
    }
    bootstrap_.barrier();
  }
  share(ProbeStage::kCopies, found);
}

void ProbeStages::share(ProbeStage stage, const std::vector<Found>& found) {
  for (const std::string& bytes :
       bootstrap_.all_gather(bytes_of_values(found.data(), found.size()))) {
    for (const Found& one : values_of_bytes<Found>(bytes)) {
      PeerPair& pair = verdict_.pair(one.accessor, one.owner);
      if (one.finding.fault != PeerFault::kNone && pair.failed == ProbeStage::kNone) {
        pair.failed = stage;
        pair.finding = one.finding;
      }
    }
  }
}

}  // namespace lockstep
