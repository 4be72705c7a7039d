#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/device/cuda_device.h"

namespace lockstep {

/// Device memory with poison around it, from the `shift`-th float on: 16-byte aligned or not.
class Guarded {
 public:
  Guarded(CudaStream& stream, const std::vector<float>& values, int64_t shift)
      : stream_(stream),
        begin_(kGuard + shift),
        memory_(static_cast<int64_t>(values.size()) + 2 * kGuard + shift) {
    host_.assign(static_cast<size_t>(memory_.size()), std::nanf(""));
    std::copy(values.begin(), values.end(), host_.begin() + begin_);
    size_ = static_cast<int64_t>(values.size());
    copy_from_host(stream_, memory_.view(), host_.data());
    stream_.synchronize();
  }
  CudaView<float> view() { return memory_.view().subview({begin_, begin_ + size_}); }
  std::vector<float> values() {
    std::vector<float> all(host_.size());
    copy_to_host(stream_, all.data(), std::as_const(memory_).view());
    stream_.synchronize();
    for (size_t i = 0; i < all.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (at < begin_ || at >= begin_ + size_) {
        EXPECT_TRUE(std::isnan(all[i])) << "written outside of c, at " << at - begin_;
      }
    }
    return {all.begin() + begin_, all.begin() + begin_ + size_};
  }

 private:
  static constexpr int64_t kGuard = 64;
  CudaStream& stream_;
  int64_t begin_;
  int64_t size_ = 0;
  CudaBuffer<float> memory_;
  std::vector<float> host_;
};

}  // namespace lockstep
