#pragma once

#include <cstdint>

#include "core/device/cpu_device.h"

namespace lockstep {

inline constexpr int64_t kFingerprintPieces = 4;
inline constexpr int kFingerprintPieceBits = 16;

/// A fingerprint of 64 bits of an array: it differs, but for one case in 2^64, when any bit of it
/// or any element's place does. The sum, modulo 2^64, over all elements of a mix of bits and place
/// (`fingerprint_term`): the same on every device, in any order of additions. pieces[p] is bits
/// [16p, 16p + 16) of it as an integer, so that what sums floats over ranks carries it exactly.
template <class Device>
struct Fingerprint {
  View<Device, float> pieces;  ///< (kFingerprintPieces)
  View<Device, const float> x;
};
void fingerprint(CpuStream& stream, const Fingerprint<CpuDevice>& args);

/// One element's part: a multiplication spreads what differs to the upper half, from where it comes
/// back to the lower one, twice (Stafford's variants of the finaliser of MurmurHash3 do the same).
constexpr uint64_t fingerprint_term(uint32_t bits, int64_t index) {
  uint64_t mixed = static_cast<uint64_t>(index) << 32U | bits;
  mixed = (mixed ^ mixed >> 32U) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ mixed >> 29U) * 0x94d049bb133111ebU;
  return mixed ^ mixed >> 32U;
}

/// Piece `piece` of a fingerprint.
constexpr float fingerprint_piece(uint64_t fingerprint, int64_t piece) {
  return static_cast<float>(fingerprint >> (piece * kFingerprintPieceBits) & 0xffffU);
}

/// And back: what the pieces are of. What is no piece, as a sum that failed may bring, counts as 0.
inline uint64_t fingerprint_of(const float* pieces) {
  uint64_t whole = 0;
  for (int64_t piece = 0; piece < kFingerprintPieces; ++piece) {
    const float value = pieces[piece];
    const bool valid = value >= 0.0F && value < static_cast<float>(1 << kFingerprintPieceBits);
    whole |= (valid ? static_cast<uint64_t>(value) : 0) << (piece * kFingerprintPieceBits);
  }
  return whole;
}

}  // namespace lockstep
