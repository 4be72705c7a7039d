#pragma once

#include <cstdint>

#include "core/base/range.h"

// What the peer probe writes where: pure, so that the kernels that write and check it, the checks
// on the host and the tests are of one source.

namespace lockstep {

/// The pieces of a window that are written, in bytes: a large one whose ends are aligned for every
/// access, and one on each side whose ends are not. What lies between them must stay as it was.
inline constexpr Range kProbeHead{1, 4094};
inline constexpr Range kProbeBulk{8192, 8192 + (16 << 20)};
inline constexpr Range kProbeTail{kProbeBulk.end + 5, kProbeBulk.end + 3006};
inline constexpr int64_t kProbeWindowBytes = kProbeBulk.end + 8192;
/// From the first piece to the last, with what lies between them.
inline constexpr Range kProbeSpan{kProbeHead.begin, kProbeTail.end};

/// A bijection that leaves no trace of the order of its arguments (MurmurHash3's finalizer).
constexpr uint32_t mix_bits(uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x85ebca6bU;
  x = (x ^ (x >> 13U)) * 0xc2b2ae35U;
  return x ^ (x >> 16U);
}

/// Names the values that one rank writes into the memory of one in one epoch; any two differ. A
/// rank's own values in its own memory are what has to vanish, or what others have to read.
constexpr uint32_t probe_key(int writer, int owner, uint32_t epoch) {
  const auto pair = (static_cast<uint32_t>(writer) << 16U) | static_cast<uint32_t>(owner);
  return mix_bits(pair ^ mix_bits(epoch));
}

/// What is copied behind those values, to tell that they are there.
constexpr uint64_t probe_mark(int writer, int owner, uint32_t epoch) {
  return uint64_t{probe_key(writer, owner, epoch)} << 32U | epoch;
}

/// Word `index` of a window's 32-bit words.
constexpr uint32_t probe_word(uint32_t key, int64_t index) {
  return mix_bits(static_cast<uint32_t>(index) * 0x9e3779b9U + key);
}

/// The bits of word `index` that lie in a piece.
constexpr uint32_t probe_mask(int64_t index) {
  const int64_t begin = 4 * index;
  if (begin >= kProbeBulk.begin && begin < kProbeBulk.end) {
    return ~0U;
  }
  uint32_t mask = 0;
  for (int64_t byte = 0; byte < 4; ++byte) {
    const int64_t at = begin + byte;
    const bool written = (at >= kProbeHead.begin && at < kProbeHead.end) ||
                         (at >= kProbeTail.begin && at < kProbeTail.end);
    mask |= written ? 0xffU << (8 * byte) : 0U;
  }
  return mask;
}

/// What a window holds: `pieces` in its pieces and `rest` elsewhere.
struct ProbeContent {
  uint32_t pieces;
  uint32_t rest;
};

constexpr uint32_t probe_word(ProbeContent content, int64_t index) {
  const uint32_t mask = probe_mask(index);
  return (probe_word(content.pieces, index) & mask) | (probe_word(content.rest, index) & ~mask);
}

}  // namespace lockstep
