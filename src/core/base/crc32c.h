#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes`, continuing from `crc` of the bytes
/// before them. Uses the SSE4.2 instruction where the processor has it.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

/// The masked form in which TFRecord files store a CRC, so that a CRC over data that holds CRCs
/// stays meaningful.
constexpr uint32_t masked_crc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace lockstep
