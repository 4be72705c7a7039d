#pragma once

#include <cstdint>

#include "comm/collective_kind.h"
#include "core/base/range.h"

namespace lockstep {

/// What a collective is about, in short: ranks that call different ones must not add up different
/// things.
constexpr uint32_t sum_digest(Range range, int bucket,
                              CollectiveKind kind = CollectiveKind::kAllReduce) {
  const auto begin = static_cast<uint64_t>(range.begin);
  const auto end = static_cast<uint64_t>(range.end);
  const uint64_t digest =
      ((begin * 31 + end) * 31 + static_cast<uint32_t>(bucket)) * 0x9e3779b97f4a7c15U;
  return static_cast<uint32_t>(digest >> 32U) ^ static_cast<uint32_t>(kind);
}

}  // namespace lockstep
