#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/range.h"

namespace lockstep {

namespace internal {

/// Throws InternalError unless `range` lies in [0, size). Not inline: nvcc 13 cannot check fmt's
/// format strings.
void check_subview(Range range, int64_t size);
/// Throws InternalError when a copy of `to` elements has only `from` to read.
void check_copy(int64_t to, int64_t from);

}  // namespace internal

/// Contiguous memory of a device, not owned. The device is part of the type: handing host memory to
/// a CUDA op does not compile. A view of T converts to a view of const T; an empty view means
/// "none" where an argument is optional.
template <class Device, class T>
class View {
 public:
  constexpr View() = default;
  constexpr View(T* data, int64_t size) : data_(data), size_(size) {}
  template <class U>
  requires std::is_same_v<T, const U>
  constexpr View(View<Device, U> other) : data_(other.data()), size_(other.size()) {}

  constexpr T* data() const { return data_; }
  constexpr int64_t size() const { return size_; }  ///< in elements
  constexpr bool empty() const { return size_ == 0; }

  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  /// Only host memory may be read by the host.
  constexpr T& operator[](int64_t index) const requires Device::kHostAccessible {
    return data_[index];
  }

  View subview(Range range) const {
    internal::check_subview(range, size_);
    return View(data_ + range.begin, range.size());
  }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace lockstep
