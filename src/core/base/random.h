#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace lockstep {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): a
/// counter-based generator, a pure function of (seed, stream, index). Any element can be drawn by
/// any rank or device without state, which is what makes initialisation and data order independent
/// of the number of ranks.
constexpr std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t index) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                               static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  auto k0 = static_cast<uint32_t>(seed);
  auto k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

/// 64 uniform random bits of (seed, stream, index).
constexpr uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
  const auto r = philox(seed, stream, index);
  return (uint64_t{r[0]} << 32) | r[1];
}

/// Uniform in [0, 1), 53 bits.
constexpr double random_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return static_cast<double>(random_bits(seed, stream, index) >> 11) * 0x1.0p-53;
}

/// Four independent standard normals of one counter, by Box and Muller's transform of two pairs.
inline std::array<double, 4> random_normals(uint64_t seed, uint64_t stream, uint64_t index) {
  const auto r = philox(seed, stream, index);
  std::array<double, 4> normals{};
  for (size_t pair = 0; pair < 4; pair += 2) {
    // u in (0, 1]: its logarithm is finite
    const double u = (static_cast<double>(r[pair]) + 1.0) * 0x1.0p-32;
    const double angle = 2.0 * std::numbers::pi * 0x1.0p-32 * static_cast<double>(r[pair + 1]);
    const double radius = std::sqrt(-2.0 * std::log(u));
    normals[pair] = radius * std::cos(angle);
    normals[pair + 1] = radius * std::sin(angle);
  }
  return normals;
}

/// The first of them, where one is wanted.
inline double random_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  return random_normals(seed, stream, index)[0];
}

}  // namespace lockstep
