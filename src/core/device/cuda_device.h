#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/device/buffer.h"
#include "core/device/view.h"

struct CUstream_st;
struct CUevent_st;

namespace lockstep {

/// Facts of a GPU that plans are made from: plain data, so that a plan can be tested without the
/// GPU.
struct CudaFacts {
  std::string name;
  int compute_capability = 0;  ///< 90 for Hopper
  int multiprocessors = 0;
  int64_t shared_bytes_per_block = 0;  ///< the most that a block may opt in to
  int64_t shared_bytes_per_multiprocessor = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
  std::string pci_id;
};

/// Number of usable GPUs; 0 without a driver, without a device, or in a build without CUDA.
int cuda_device_count();
/// Throws UnsupportedError unless there is a GPU that this build can use. A build without CUDA has
/// this function and cuda_device_count, and nothing else of this header.
void require_cuda_device();
CudaFacts cuda_facts(int device);

/// An ordered queue of work on the current GPU. Move-only; the destructor waits for nothing.
class CudaStream {
 public:
  CudaStream();
  ~CudaStream();
  CudaStream(CudaStream&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  CudaStream& operator=(CudaStream&& other) noexcept;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  CUstream_st* handle() const { return handle_; }
  /// Waits for everything enqueued. Throws what went wrong on the device meanwhile.
  void synchronize();

 private:
  CUstream_st* handle_ = nullptr;
};

/// A point in a stream, with its time.
class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  CudaEvent(CudaEvent&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  CudaEvent& operator=(CudaEvent&& other) noexcept;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(CudaStream& stream);
  /// Waits for this event; seconds from `start` to it.
  double seconds_since(const CudaEvent& start);

 private:
  CUevent_st* handle_ = nullptr;
};

/// One GPU as a device: the current one of the calling thread.
struct CudaDevice {
  using Stream = CudaStream;
  static constexpr bool kHostAccessible = false;
  static constexpr std::string_view kName = "cuda";

  /// Zeroed device memory. Throws OutOfMemoryError with what was asked for and what was free.
  static void* allocate(int64_t bytes);
  static void deallocate(void* data, int64_t bytes) noexcept;
};

template <class T>
using CudaView = View<CudaDevice, T>;
template <class T>
using CudaBuffer = Buffer<CudaDevice, T>;

void copy_bytes_from_host(CudaStream& stream, void* to, const void* from, int64_t bytes);
void copy_bytes_to_host(CudaStream& stream, void* to, const void* from, int64_t bytes);

/// Copies in stream order; the host memory must stay until the stream has passed the copy.
template <class T>
void copy_from_host(CudaStream& stream, CudaView<T> to, const T* from) {
  copy_bytes_from_host(stream, to.data(), from, to.size() * static_cast<int64_t>(sizeof(T)));
}
template <class T>
void copy_to_host(CudaStream& stream, T* to, CudaView<const T> from) {
  copy_bytes_to_host(stream, to, from.data(), from.size() * static_cast<int64_t>(sizeof(T)));
}

}  // namespace lockstep
