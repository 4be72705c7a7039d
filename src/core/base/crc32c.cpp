#include "core/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace lockstep {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected

constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    }
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < 8; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

uint64_t load64(const std::byte* p) {
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// Slicing by eight: one table look-up per byte, eight independent ones per step.
uint32_t update_portable(uint32_t crc, const std::byte* p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    const uint64_t word = load64(p) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) {
      crc ^= kTables[7 - i][(word >> (8 * i)) & 0xffU];
    }
  }
  for (; n > 0; --n, ++p) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<uint32_t>(*p)) & 0xffU];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t update_sse42(uint32_t crc, const std::byte* p,
                                                        size_t n) {
  uint64_t wide = crc;
  for (; n >= 8; n -= 8, p += 8) {
    wide = _mm_crc32_u64(wide, load64(p));
  }
  crc = static_cast<uint32_t>(wide);
  for (; n > 0; --n, ++p) {
    crc = _mm_crc32_u8(crc, std::to_integer<unsigned char>(*p));
  }
  return crc;
}
#endif

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  const uint32_t start = ~crc;
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2");
  if (has_sse42) {
    return ~update_sse42(start, bytes.data(), bytes.size());
  }
#endif
  return ~update_portable(start, bytes.data(), bytes.size());
}

}  // namespace lockstep
