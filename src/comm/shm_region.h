#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "comm/transport.h"
#include "core/base/file.h"

namespace lockstep {

/// A count in memory shared by two processes: one side posts ever larger values, the other waits
/// for them. What the poster wrote before `post` is visible to who has read the value.
class ShmCounter {
 public:
  void post(uint64_t value) noexcept;
  uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }
  /// Sleeps in the kernel until the count is no longer `seen`, or `limit` has passed.
  void sleep_while(uint64_t seen, std::chrono::microseconds limit) noexcept;

 private:
  std::atomic<uint64_t> value_;
  std::atomic<uint32_t> sleeping_;
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
};

/// An edge from a region's owner to its successor. Each counter has a cache line of its own, since
/// its writer and its reader are on different cores.
struct ShmChannel {
  /// The owner begins no collective before the successor has ended the one so many before it.
  static constexpr size_t kHeaders = 4;

  alignas(64) ShmCounter published;  ///< messages; posted by the region's owner
  alignas(64) ShmCounter consumed;   ///< messages; posted by the successor
  alignas(64) std::array<CollectiveHeader, kHeaders> headers;  ///< by sequence
};

/// The first page of a rank's region.
struct ShmControl {
  alignas(64) std::array<uint64_t, 2> nonce;        ///< proves that the right memory was opened
  std::array<ShmChannel, kMostRingLanes> channels;  ///< by lane
};
static_assert(sizeof(ShmControl) <= 4096);

/// A rank's window in memory that other processes of the host can map: an anonymous file (memfd),
/// so it does not count against the size of /dev/shm and is gone with the last process that maps
/// it, however that dies.
class ShmRegion {
 public:
  /// The region of this rank, zeroed and backed by memory. Throws OutOfMemoryError.
  static ShmRegion create(int64_t window_elements);
  /// Maps another rank's region by its address; none when this process cannot (another host or
  /// pid namespace, another user). Needs no privilege between processes of one user.
  static std::optional<ShmRegion> open(std::string_view address);

  ~ShmRegion();
  ShmRegion(ShmRegion&& other) noexcept;
  ShmRegion& operator=(ShmRegion&& other) noexcept;
  ShmRegion(const ShmRegion&) = delete;
  ShmRegion& operator=(const ShmRegion&) = delete;

  /// What `open` takes, while the creator has it.
  const std::string& address() const { return address_; }

  ShmControl& control() const { return *reinterpret_cast<ShmControl*>(data_); }
  float* window() const { return reinterpret_cast<float*>(data_ + kControlBytes); }

 private:
  static constexpr size_t kControlBytes = 4096;

  ShmRegion(UniqueFd fd, size_t bytes);

  UniqueFd fd_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::string address_;
};

}  // namespace lockstep
