#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device/cuda_device.h"

namespace lockstep {

/// Values in device memory with poison on both sides, from the `shift`-th element on: 16-byte
/// aligned or not.
template <class T>
class Guarded {
 public:
  Guarded(CudaStream& stream, const std::vector<T>& values, int64_t shift = 0)
      : stream_(stream),
        range_{kMargin + shift, kMargin + shift + static_cast<int64_t>(values.size())},
        memory_(range_.end + kMargin) {
    std::vector<T> host(static_cast<size_t>(memory_.size()), poison());
    std::copy(values.begin(), values.end(), host.begin() + range_.begin);
    copy_from_host(stream_, memory_.view(), host.data());
    stream_.synchronize();
  }
  /// Poison alone, for an output.
  Guarded(CudaStream& stream, int64_t size, int64_t shift = 0)
      : Guarded(stream, std::vector<T>(static_cast<size_t>(size), poison()), shift) {}

  CudaView<T> view() { return memory_.view().subview(range_); }

  /// Waits for the stream; fails the test when anything around the values was written.
  std::vector<T> values() const {
    std::vector<T> all(static_cast<size_t>(memory_.size()));
    copy_to_host(stream_, all.data(), memory_.view());
    stream_.synchronize();
    const auto begin = all.begin() + range_.begin;
    const auto end = all.begin() + range_.end;
    EXPECT_TRUE(std::all_of(all.begin(), begin, is_poison)) << "written in front of an array";
    EXPECT_TRUE(std::all_of(end, all.end(), is_poison)) << "written behind an array";
    return {begin, end};
  }

 private:
  static constexpr int64_t kMargin = 64;

  static T poison() {
    if constexpr (std::is_floating_point_v<T>) {
      return std::numeric_limits<T>::quiet_NaN();
    } else {
      return T{};
    }
  }
  static bool is_poison(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isnan(value);
    } else {
      return value == T{};
    }
  }

  CudaStream& stream_;
  Range range_;
  CudaBuffer<T> memory_;
};

}  // namespace lockstep
