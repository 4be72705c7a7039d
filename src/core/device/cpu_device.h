#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/device/buffer.h"
#include "core/device/view.h"

namespace lockstep {

/// The most threads that a stream may be asked for: as many CPUs as a rank's affinity mask can
/// name.
inline constexpr int64_t kMostThreads = 1024;

/// Where CPU ops run: inline, on the calling thread and the OpenMP threads it may use. An op has
/// finished when its call returns, so there is nothing to wait for. The results of no op depend on
/// the number of threads.
class CpuStream {
 public:
  explicit CpuStream(int threads = 1) : threads_(threads) {}
  int threads() const { return threads_; }
  void synchronize() {}

 private:
  int threads_;
};

/// A point in a stream, with its time: on the CPU it has passed as soon as it is recorded.
class CpuEvent {
 public:
  void record(CpuStream& /*stream*/) { time_ = Clock::now(); }
  void mark(CpuStream& stream) { record(stream); }
  void synchronize() {}
  /// Seconds from `start` to it.
  double seconds_since(const CpuEvent& start) const {
    return std::chrono::duration<double>(time_ - start.time_).count();
  }

 private:
  Clock::time_point time_;
};

/// Work that is enqueued again and again without change. On the CPU each launch runs it.
class CpuGraph {
 public:
  CpuGraph() = default;
  CpuGraph(CpuStream& /*stream*/, std::function<void()> work) : work_(std::move(work)) {}
  bool empty() const { return !work_; }
  void launch(CpuStream& /*stream*/) { work_(); }

 private:
  std::function<void()> work_;
};

/// The host as a device.
struct CpuDevice {
  using Stream = CpuStream;
  using Event = CpuEvent;
  using Graph = CpuGraph;
  using Host =
      CpuDevice;  ///< memory of the host that copies to and from the device are fastest with
  static constexpr bool kHostAccessible = true;
  /// Whether an op's call returns before the op has run.
  static constexpr bool kRunsBesideHost = false;
  static constexpr std::string_view kName = "cpu";

  /// Zeroed memory, page-aligned. Throws OutOfMemoryError with the size asked for.
  static void* allocate(int64_t bytes);
  static void deallocate(void* data, int64_t bytes) noexcept;

  /// Bytes that can still be allocated; -1 when it is not known.
  static int64_t free_bytes();
};

template <class T>
using CpuView = View<CpuDevice, T>;
template <class T>
using CpuBuffer = Buffer<CpuDevice, T>;

/// Fills with zeros, in stream order.
template <class T>
void set_zero(CpuStream& /*stream*/, CpuView<T> view) {
  std::fill_n(view.data(), view.size(), T{});
}

/// Copies inside the device, in stream order: as much as `to` holds. Throws InternalError when
/// `from` is smaller. They must not overlap.
template <class T>
void copy(CpuStream& /*stream*/, CpuView<T> to, CpuView<const T> from) {
  internal::check_copy(to.size(), from.size());
  std::copy_n(from.data(), to.size(), to.data());
}

/// Copies between host memory and a device, in stream order: as much as the view holds, and the
/// caller sees to it that there is as much at the pointer. On the CPU both are plain copies.
template <class T>
void copy_from_host(CpuStream& /*stream*/, CpuView<T> to, const T* from) {
  std::copy_n(from, to.size(), to.data());
}
template <class T>
void copy_to_host(CpuStream& /*stream*/, T* to, CpuView<const T> from) {
  std::copy_n(from.data(), from.size(), to);
}

}  // namespace lockstep
