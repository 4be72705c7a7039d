#pragma once

#include <cstdint>
#include <utility>

#include "core/device/view.h"

namespace lockstep {

/// Owns `size` elements of a device's memory, zeroed, aligned for the widest access of the device.
/// Move-only. Freed on destruction: the owner outlives every op enqueued on it.
template <class Device, class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t size)
      : data_(static_cast<T*>(Device::allocate(size * static_cast<int64_t>(sizeof(T))))),
        size_(size) {}
  ~Buffer() { release(); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  View<Device, T> view() { return {data_, size_}; }
  View<Device, const T> view() const { return {data_, size_}; }
  int64_t size() const { return size_; }

 private:
  void release() noexcept {
    if (data_ != nullptr) {
      Device::deallocate(data_, size_ * static_cast<int64_t>(sizeof(T)));
    }
  }

  T* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace lockstep
