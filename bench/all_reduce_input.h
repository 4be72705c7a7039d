#pragma once

#include <cstdint>

namespace lockstep {

/// What element `i` of `rank` is in a round: a small integer, so that sums are exact, and different
/// in each place and round, so that data of another place or an earlier round is wrong. Plain
/// arithmetic, for the host and for kernels.
constexpr float all_reduce_input(uint32_t i, int rank, uint32_t round) {
  const uint32_t mixed =
      (i + round * 7919U) * 2654435761U + static_cast<uint32_t>(rank) * 0x3f1d2b49U;
  return static_cast<float>(static_cast<int32_t>(mixed >> 23U));
}

}  // namespace lockstep
