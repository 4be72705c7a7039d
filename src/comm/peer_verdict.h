#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/peer_pattern.h"

namespace lockstep {

/// What the peer probe tries, in this order; the first that fails is a pair's verdict.
enum class ProbeStage : uint8_t {
  kNone,         ///< all passed
  kIdentity,     ///< one host, and the driver does not deny access
  kMapping,      ///< the memory can be mapped
  kStores,       ///< what a kernel stores is seen by the owner
  kSecondEpoch,  ///< and other values after it
  kLoads,        ///< a kernel loads what the owner wrote
  kCopies,       ///< copy engines write and read it
  kLive,         ///< kernels that run at the same time see each other's data behind a flag
  kLiveCopies,   ///< a kernel that runs sees of two copies the second behind the first; a link that
                 ///< fails here is trusted with nothing
  kSpeed,        ///< it is faster than through the host
};

/// What the driver says of access.
enum class PeerClaim : uint8_t {
  kUnknown,  ///< this process does not see the other's GPU
  kNo,
  kYes,
  kSameGpu,
};

/// "yes", "no", "unknown" or "one GPU".
std::string_view claim_name(PeerClaim claim);

/// What was found in place of the values.
enum class PeerFault : uint8_t {
  kNone,
  kNothing,  ///< the owner's own values: nothing arrived
  kZeros,
  kStale,  ///< the values of the epoch before
  kOther,
  kLate,     ///< no flag or mark came in time
  kUntried,  ///< what needs both directions, and the other one failed before
};

/// The first wrong word of a window or a message.
struct PeerFinding {
  PeerFault fault = PeerFault::kNone;
  uint32_t found = 0;
  uint32_t expected = 0;
  int64_t byte = 0;  ///< where in the window
};

/// What is wrong with word `index` of a window that holds `found` and not what is expected; `stale`
/// is the key of the epoch before.
PeerFinding finding_at(int64_t index, uint32_t found, ProbeContent expected, uint32_t stale);

/// Sizes that rates are measured with.
inline constexpr std::array<int64_t, 2> kProbeRateBytes{64 << 10, 16 << 20};
/// GB/s at each size.
using PeerRates = std::array<double, 2>;

/// How one rank reaches the memory of another.
struct PeerPair {
  PeerClaim claim = PeerClaim::kUnknown;
  ProbeStage failed = ProbeStage::kNone;
  PeerFinding finding;    ///< of the stage that failed
  PeerRates kernel{};     ///< stores of a kernel; zero when not measured
  PeerRates copies{};     ///< a copy engine
  double latency_us = 0;  ///< from a flag's store to its sight, with data

  bool proven() const { return failed == ProbeStage::kNone || failed == ProbeStage::kSpeed; }
};

/// The same on all ranks.
struct PeerVerdict {
  explicit PeerVerdict(int world_size);

  PeerPair& pair(int accessor, int owner) { return pairs[index(accessor, owner)]; }
  const PeerPair& pair(int accessor, int owner) const { return pairs[index(accessor, owner)]; }

  /// Whether another rank has the GPU of this one.
  bool shares_gpu(int rank) const;

  int ranks;
  std::vector<PeerPair> pairs;     ///< by accessor, then owner; those of a rank with itself unused
  std::vector<PeerRates> staging;  ///< by rank: through page-locked memory, both ways at once
  bool usable = false;             ///< every rank may use every other's memory
  std::string reason;              ///< one line

 private:
  size_t index(int accessor, int owner) const {
    return static_cast<size_t>(accessor) * static_cast<size_t>(ranks) + static_cast<size_t>(owner);
  }
};

/// Slower than this part of the way through the host, peer access is not used.
inline constexpr double kLeastOfStaging = 0.9;

/// Judges the speed of the pairs that passed everything else, and sets `usable` and `reason`. A
/// `mapping_problem` that is not empty is the reason of a failed mapping.
void settle(PeerVerdict* verdict, const std::string& mapping_problem = {});

/// "rank 0's stores do not reach rank 1's memory (stage 3, stores): ...", for a pair that failed.
std::string failure_text(const PeerVerdict& verdict, int accessor, int owner);

/// The pairs as a table with a header, a line each.
std::string pairs_text(const PeerVerdict& verdict);

/// How far both sides of a ping-pong came: messages that arrived.
struct LiveCounts {
  uint32_t first;   ///< at the side that sends first
  uint32_t second;  ///< at the side that answers
};
/// Whether it was a message of the first side that was lost, else an answer.
constexpr bool lost_to_second(const LiveCounts& counts) {
  return counts.second <= counts.first;
}

}  // namespace lockstep
