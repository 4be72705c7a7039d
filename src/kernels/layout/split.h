#pragma once

// A float as the sum of two that tensor cores multiply exactly: TF32 values have eleven significant
// bits, and of a float's bits only the upper 19 count. Plain constexpr functions, tested on the
// host.

#include <bit>
#include <cstdint>

namespace lockstep::layout {

inline constexpr uint32_t kTf32Mask = 0xFFFFE000U;

/// The TF32 value nearest to a float, ties away from zero, both as bits. What lies beyond the
/// largest becomes infinite; a NaN may become anything.
constexpr uint32_t nearest_tf32(uint32_t bits) {
  return (bits + 0x1000U) & kTf32Mask;
}

/// A float, as bits, of which tensor cores keep the TF32 value nearest to it, ties away from zero,
/// although they drop the bits behind: half a unit is added. A NaN stays one; a quiet one does so
/// when bits are dropped, too, while others may become infinite. Magnitudes are bounded first,
/// since a NaN's may leave no room for the sum.
constexpr uint32_t raised_for_truncation(uint32_t bits) {
  constexpr uint32_t kLargestThatHasRoom = 0x7FFFFFFFU - 0x1000U;
  const uint32_t sign = bits & 0x80000000U;
  const uint32_t magnitude = bits ^ sign;
  return ((magnitude < kLargestThatHasRoom ? magnitude : kLargestThatHasRoom) + 0x1000U) | sign;
}

/// A float less `upper`, both as bits: exact when that is the TF32 value nearest to it, or its
/// truncation. NaN for a float that is not finite.
constexpr uint32_t rest_of(uint32_t bits, uint32_t upper) {
  return std::bit_cast<uint32_t>(std::bit_cast<float>(bits) - std::bit_cast<float>(upper));
}

/// How much of a product of two floats, as a share of it, is missing at most when each is taken as
/// the TF32 value nearest to it and what tensor cores keep of the rest, and the product of the
/// rests is left out: 2^-23 for the last bit of each factor, which a rest of twelve bits loses, and
/// 2^-22 for the rests. Sums of many such products err by less than one that rounds each addition.
inline constexpr double kMostLeftOut = 0x1p-21;

/// What truncation leaves of a float, rounded to the nearest TF32 value. It may be anything for a
/// float that is not finite: nor is the truncation then.
constexpr uint32_t truncation_rest(uint32_t bits) {
  return nearest_tf32(rest_of(bits, bits & kTf32Mask));
}

}  // namespace lockstep::layout
