#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/cuda_facts.h"
#include "core/device/view.h"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace lockstep {

struct CudaDevice;
class CudaEvent;

/// Number of usable GPUs; 0 without a driver, without a device, or in a build without CUDA.
int cuda_device_count();
/// Throws UnsupportedError unless there is a GPU that this build can use. A build without CUDA has
/// this function and cuda_device_count, and nothing else of this header.
void require_cuda_device();
/// The devices are those that CUDA_VISIBLE_DEVICES leaves, counted from 0.
CudaFacts cuda_facts(int device);
/// Makes `device` the one that the calling thread's streams and buffers are made on.
void use_cuda_device(int device);

/// Which work of a GPU goes first when there is more than fits.
enum class StreamPriority : uint8_t { kNormal, kHigh };

/// An ordered queue of work on the GPU that was current when it was made, and what ops on it share.
/// Move-only. The destructor does not wait for what is enqueued, but where it frees scratch memory
/// the driver may wait for the whole GPU.
class CudaStream {
 public:
  explicit CudaStream(Precision precision = Precision::kFp32,
                      StreamPriority priority = StreamPriority::kNormal);
  ~CudaStream();
  CudaStream(CudaStream&& other) noexcept;
  CudaStream& operator=(CudaStream&& other) noexcept;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  CUstream_st* handle() const { return handle_; }
  Precision precision() const { return precision_; }
  const CudaFacts& facts() const { return facts_; }

  /// Memory for one op, 256-byte aligned: the next op that asks gets the same. It is grown by an
  /// allocation when it is too small, which a stream that is being captured into a graph cannot do
  /// (InternalError): run the work once before. What was handed out once stays allocated for the
  /// stream's life, because graphs hold its address.
  void* scratch_bytes(int64_t bytes);
  template <class T>
  View<CudaDevice, T> scratch(int64_t size) {
    return {static_cast<T*>(scratch_bytes(size * static_cast<int64_t>(sizeof(T)))), size};
  }

  /// What is enqueued from here on runs behind the event's last record.
  void wait(const CudaEvent& event);
  /// Runs `function(argument)` on a thread of the driver when the stream gets there, and what is
  /// enqueued behind it afterwards. It must not call CUDA and must not throw.
  void call_host(void (*function)(void*), void* argument);

  /// Waits for everything enqueued. Throws what went wrong on the device meanwhile.
  void synchronize();

 private:
  CUstream_st* handle_ = nullptr;
  Precision precision_;
  CudaFacts facts_;
  std::vector<void*> scratch_;  ///< the last is in use
  int64_t scratch_size_ = 0;
};

/// A point in a stream, with its time. Move-only.
class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  CudaEvent& operator=(CudaEvent&& other) noexcept;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  CUevent_st* handle() const { return handle_; }
  void record(CudaStream& stream);
  /// As record, for a time that is read by seconds_since also when the stream is being captured:
  /// each launch of the graph then records it.
  void mark(CudaStream& stream);
  /// Waits until the stream has passed the last record.
  void synchronize();
  /// Waits for this event; seconds from `start` to it.
  double seconds_since(const CudaEvent& start);

 private:
  CUevent_st* handle_ = nullptr;
};

/// Work that is enqueued again and again without change, captured once into a CUDA graph: a launch
/// costs one call, however many ops it has. Move-only.
class CudaGraph {
 public:
  CudaGraph() = default;
  /// Captures what `work` enqueues on `stream`, and on streams that it forks from and joins to it,
  /// without running any of it. Addresses and sizes are fixed from then on. `work` must have run
  /// once before, so that nothing has to be allocated.
  CudaGraph(CudaStream& stream, const std::function<void()>& work);
  ~CudaGraph();
  CudaGraph(CudaGraph&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  CudaGraph& operator=(CudaGraph&& other) noexcept;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  bool empty() const { return handle_ == nullptr; }
  void launch(CudaStream& stream);

 private:
  CUgraphExec_st* handle_ = nullptr;
};

/// Host memory that a GPU copies from and to by itself while the host goes on: its pages are
/// locked.
struct CudaHost {
  static constexpr bool kHostAccessible = true;

  /// Zeroed. Throws OutOfMemoryError with the size asked for.
  static void* allocate(int64_t bytes);
  static void deallocate(void* data, int64_t bytes) noexcept;
};

/// One GPU as a device: the current one of the calling thread.
struct CudaDevice {
  using Stream = CudaStream;
  using Event = CudaEvent;
  using Graph = CudaGraph;
  using Host = CudaHost;
  static constexpr bool kHostAccessible = false;
  static constexpr bool kRunsBesideHost = true;
  static constexpr std::string_view kName = "cuda";

  /// Zeroed device memory. Throws OutOfMemoryError with what was asked for and what was free.
  static void* allocate(int64_t bytes);
  static void deallocate(void* data, int64_t bytes) noexcept;

  /// Bytes that can still be allocated.
  static int64_t free_bytes();
};

template <class T>
using CudaView = View<CudaDevice, T>;
template <class T>
using CudaBuffer = Buffer<CudaDevice, T>;

/// Copies of memory that no view is of, in stream order. Of the host's memory copy_from_host and
/// copy_to_host below say what is asked.
void copy_bytes_from_host(CudaStream& stream, void* to, const void* from, int64_t bytes);
void copy_bytes_to_host(CudaStream& stream, void* to, const void* from, int64_t bytes);
void copy_bytes(CudaStream& stream, void* to, const void* from, int64_t bytes);

/// Fills with zeros, in stream order.
void set_zero_bytes(CudaStream& stream, void* data, int64_t bytes);
template <class T>
void set_zero(CudaStream& stream, CudaView<T> view) {
  set_zero_bytes(stream, view.data(), view.size() * static_cast<int64_t>(sizeof(T)));
}

/// Copies inside the device, in stream order: as much as `to` holds. Throws InternalError when
/// `from` is smaller. They must not overlap.
template <class T>
void copy(CudaStream& stream, CudaView<T> to, CudaView<const T> from) {
  internal::check_copy(to.size(), from.size());
  copy_bytes(stream, to.data(), from.data(), to.size() * static_cast<int64_t>(sizeof(T)));
}

/// Copies in stream order: as much as the view holds, and the caller sees to it that there is as
/// much at the pointer. Memory of CudaHost must stay as it is until the stream has passed the copy;
/// from other memory the driver has taken what it needs when the call returns, and in the other
/// direction the call waits.
template <class T>
void copy_from_host(CudaStream& stream, CudaView<T> to, const T* from) {
  copy_bytes_from_host(stream, to.data(), from, to.size() * static_cast<int64_t>(sizeof(T)));
}
template <class T>
void copy_to_host(CudaStream& stream, T* to, CudaView<const T> from) {
  copy_bytes_to_host(stream, to, from.data(), from.size() * static_cast<int64_t>(sizeof(T)));
}

}  // namespace lockstep
