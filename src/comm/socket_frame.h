#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "comm/collective_kind.h"
#include "core/base/crc32c.h"
#include "core/device/cpu_device.h"

namespace lockstep {

/// What precedes the data of a message on a socket edge; integers in the order of x86-64 and arm64.
/// As long as a cache line, so that all data lies in the kernel's buffers as in the window: `rep
/// movsb` copies 32 KiB at 55 GB/s then on a Zen 4 core, and at 33 GB/s behind 56 bytes.
struct Frame {
  enum Kind : uint32_t { kHeader = 0x4c4b5348, kData = 0x4c4b5344 };  // "LKSH", "LKSD"

  uint32_t kind = kData;
  uint32_t element_bytes = 0;
  uint64_t message = 0;   ///< of this edge, from 1
  uint64_t sequence = 0;  ///< of the collective
  int64_t begin = 0;
  int64_t end = 0;
  int32_t bucket = 0;
  uint32_t data_check = 0;  ///< of the data, between hosts
  uint32_t collective = 0;  ///< of a header: the CollectiveKind
  uint32_t unused = 0;
  uint64_t frame_check = 0;  ///< of everything before it
};
static_assert(sizeof(Frame) == 64 && std::has_unique_object_representations_v<Frame>);

inline size_t bytes_of(CpuView<const float> data) {
  return static_cast<size_t>(data.size()) * sizeof(float);
}

/// Whether `value` is a CollectiveKind.
constexpr bool is_collective_kind(uint32_t value) {
  return value <= static_cast<uint32_t>(CollectiveKind::kAllGather);
}

inline uint32_t check_of(const Frame& frame) {
  return crc32c(std::as_bytes(std::span(&frame, 1)).first(offsetof(Frame, frame_check)));
}

inline uint32_t check_of(CpuView<const float> data) {
  return crc32c(std::as_bytes(std::span(data.data(), static_cast<size_t>(data.size()))));
}

}  // namespace lockstep
