#include "comm/peer_verdict.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr int kLargest = static_cast<int>(kProbeRateBytes.size()) - 1;

std::string_view stage_name(ProbeStage stage) {
  constexpr std::array<std::string_view, 10> names{"none",         "identity", "mapping", "stores",
                                                   "second epoch", "loads",    "copies",  "live",
                                                   "live copies",  "speed"};
  return names[static_cast<size_t>(stage)];
}

std::string fault_text(const PeerFinding& finding) {
  switch (finding.fault) {
    case PeerFault::kNone:
      break;
    case PeerFault::kNothing:
      return fmt::format("byte {} is as it was before", finding.byte);
    case PeerFault::kZeros:
      return fmt::format("byte {} reads as zeros", finding.byte);
    case PeerFault::kStale:
      return fmt::format("byte {} has the values of the epoch before", finding.byte);
    case PeerFault::kOther:
      return fmt::format("byte {} has {:08x} and not {:08x}", finding.byte, finding.found,
                         finding.expected);
    case PeerFault::kLate:
      return fmt::format("message {} did not come", finding.expected);
    case PeerFault::kUntried:
      return "not tried, since the other direction failed";
  }
  return {};
}

/// The larger of what kernels and copy engines reach.
double best_rate(const PeerPair& pair) {
  return std::max(pair.kernel[kLargest], pair.copies[kLargest]);
}

double staging_rate(const PeerVerdict& verdict, int one, int other) {
  const auto rate = [&](int rank) {
    return verdict.staging.empty() ? 0.0 : verdict.staging[static_cast<size_t>(rank)][kLargest];
  };
  return std::min(rate(one), rate(other));
}

std::string stage_text(const PeerVerdict& verdict, int accessor, int owner) {
  switch (verdict.pair(accessor, owner).failed) {
    case ProbeStage::kNone:
      break;
    case ProbeStage::kIdentity:
      return verdict.pair(accessor, owner).claim == PeerClaim::kNo
                 ? fmt::format("rank {}'s GPU cannot address rank {}'s", accessor, owner)
                 : fmt::format("ranks {} and {} are on different hosts", accessor, owner);
    case ProbeStage::kMapping:
      return fmt::format("rank {} cannot map rank {}'s memory", accessor, owner);
    case ProbeStage::kStores:
      return fmt::format("rank {}'s stores do not reach rank {}'s memory", accessor, owner);
    case ProbeStage::kSecondEpoch:
      return fmt::format("rank {}'s later stores do not reach rank {}'s memory", accessor, owner);
    case ProbeStage::kLoads:
      return fmt::format("rank {}'s loads do not see rank {}'s memory", accessor, owner);
    case ProbeStage::kCopies:
      return fmt::format("rank {}'s copies do not reach rank {}'s memory", accessor, owner);
    case ProbeStage::kLive:
      return fmt::format("rank {}'s messages do not reach rank {} while both GPUs run", accessor,
                         owner);
    case ProbeStage::kLiveCopies:
      return fmt::format(
          "rank {}'s copies do not reach rank {} one after another while its GPU runs", accessor,
          owner);
    case ProbeStage::kSpeed:
      return fmt::format("rank {} reaches rank {}'s memory at {:.1f} GB/s, through the host {:.1f}",
                         accessor, owner, best_rate(verdict.pair(accessor, owner)),
                         staging_rate(verdict, accessor, owner));
  }
  return {};
}

template <class Visit>
void for_each_pair(int ranks, const Visit& visit) {
  for (int accessor = 0; accessor < ranks; ++accessor) {
    for (int owner = 0; owner < ranks; ++owner) {
      if (accessor != owner) {
        visit(accessor, owner);
      }
    }
  }
}

std::string success_text(const PeerVerdict& verdict) {
  double slowest = best_rate(verdict.pair(0, 1));
  double latency = 0;
  for_each_pair(verdict.ranks, [&](int accessor, int owner) {
    slowest = std::min(slowest, best_rate(verdict.pair(accessor, owner)));
    latency = std::max(latency, verdict.pair(accessor, owner).latency_us);
  });
  return fmt::format(
      "every rank reaches every other's memory, proven: at least {:.1f} GB/s, at most {:.2f} us; "
      "{:.1f} GB/s through the host",
      slowest, latency, staging_rate(verdict, 0, 1));
}

}  // namespace

std::string_view claim_name(PeerClaim claim) {
  constexpr std::array<std::string_view, 4> names{"unknown", "no", "yes", "one GPU"};
  return names[static_cast<size_t>(claim)];
}

PeerFinding finding_at(int64_t index, uint32_t found, ProbeContent expected, uint32_t stale) {
  PeerFinding finding;
  finding.fault = PeerFault::kOther;
  finding.found = found;
  finding.expected = probe_word(expected, index);
  finding.byte = 4 * index;
  const uint32_t mask = probe_mask(index);  // what lies beside a piece has no history
  const auto is = [&](uint32_t word) { return mask != 0 && (found & mask) == (word & mask); };
  if (found == 0) {
    finding.fault = PeerFault::kZeros;
  } else if (is(probe_word(expected.rest, index))) {
    finding.fault = PeerFault::kNothing;
  } else if (is(probe_word(stale, index))) {
    finding.fault = PeerFault::kStale;
  }
  return finding;
}

PeerVerdict::PeerVerdict(int world_size)
    : ranks(world_size), pairs(static_cast<size_t>(world_size) * static_cast<size_t>(world_size)) {}

bool PeerVerdict::shares_gpu(int rank) const {
  for (int other = 0; other < ranks; ++other) {
    if (other != rank && pair(rank, other).claim == PeerClaim::kSameGpu) {
      return true;
    }
  }
  return false;
}

void settle(PeerVerdict* verdict, const std::string& mapping_problem) {
  verdict->usable = false;
  if (verdict->ranks == 1) {
    verdict->reason = "there is one rank";
    return;
  }
  if (!mapping_problem.empty()) {
    verdict->reason =
        fmt::format("{} (stage {}, {})", mapping_problem, static_cast<int>(ProbeStage::kMapping),
                    stage_name(ProbeStage::kMapping));
    return;
  }
  int first_accessor = -1;
  int first_owner = -1;
  ProbeStage first = ProbeStage::kNone;
  for_each_pair(verdict->ranks, [&](int accessor, int owner) {
    PeerPair& pair = verdict->pair(accessor, owner);
    if (pair.failed == ProbeStage::kNone &&
        best_rate(pair) < kLeastOfStaging * staging_rate(*verdict, accessor, owner)) {
      pair.failed = ProbeStage::kSpeed;
    }
    const bool tried = pair.finding.fault != PeerFault::kUntried;
    if (pair.failed != ProbeStage::kNone && tried &&
        (first == ProbeStage::kNone || pair.failed < first)) {
      first = pair.failed;
      first_accessor = accessor;
      first_owner = owner;
    }
  });
  verdict->usable = first == ProbeStage::kNone;
  verdict->reason = verdict->usable ? success_text(*verdict)
                                    : failure_text(*verdict, first_accessor, first_owner);
}

std::string failure_text(const PeerVerdict& verdict, int accessor, int owner) {
  const PeerPair& pair = verdict.pair(accessor, owner);
  LOCKSTEP_CHECK(pair.failed != ProbeStage::kNone, "pair {}, {} passed", accessor, owner);
  const std::string fault = fault_text(pair.finding);
  return fmt::format("{} (stage {}, {}){}{}", stage_text(verdict, accessor, owner),
                     static_cast<int>(pair.failed), stage_name(pair.failed),
                     fault.empty() ? "" : ": ", fault);
}

std::string pairs_text(const PeerVerdict& verdict) {
  std::string text =
      "  pair   claim    kernel GB/s 64K  16M   copies GB/s 64K  16M   latency us  proof\n";
  for_each_pair(verdict.ranks, [&](int accessor, int owner) {
    const PeerPair& pair = verdict.pair(accessor, owner);
    text += fmt::format(
        "{:>2} -> {:<2} {:<8} {:>15.1f} {:>5.1f} {:>15.1f} {:>5.1f} {:>11.2f}  {}\n", accessor,
        owner, claim_name(pair.claim), pair.kernel[0], pair.kernel[kLargest], pair.copies[0],
        pair.copies[kLargest], pair.latency_us,
        pair.failed == ProbeStage::kNone ? "proven" : failure_text(verdict, accessor, owner));
  });
  return text;
}

}  // namespace lockstep
