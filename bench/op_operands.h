#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/random.h"
#include "core/device/buffer.h"

namespace lockstep {

/// Draws what the ops that are measured work on, in the memory of a device.
template <class Device>
class OpOperands {
 public:
  using Stream = typename Device::Stream;
  using Floats = std::shared_ptr<Buffer<Device, float>>;

  explicit OpOperands(Stream& stream) : stream_(stream) {}

  Floats normal(int64_t size, uint64_t seed) {
    return repeated(size, [seed](uint64_t i) { return random_normal(seed, 0, i); });
  }
  /// Of N(0, 1).
  Floats squares(int64_t size, uint64_t seed) {
    return repeated(size, [seed](uint64_t i) {
      const double value = random_normal(seed, 0, i);
      return value * value;
    });
  }

  std::shared_ptr<Buffer<Device, int32_t>> symbols(int64_t size, int64_t vocabulary) {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < size; ++i) {
      values.push_back(static_cast<int32_t>(random_bits(1, 1, static_cast<uint64_t>(i)) %
                                            static_cast<uint64_t>(vocabulary)));
    }
    auto buffer = std::make_shared<Buffer<Device, int32_t>>(size);
    copy_from_host(stream_, buffer->view(), values.data());
    stream_.synchronize();
    return buffer;
  }

 private:
  // A million draws, over and over: a buffer of billions would take minutes to draw.
  Floats repeated(int64_t size, const std::function<double(uint64_t)>& draw) {
    std::vector<float> pattern(static_cast<size_t>(std::min<int64_t>(size, 1000003)));
    for (size_t i = 0; i < pattern.size(); ++i) {
      pattern[i] = static_cast<float>(draw(i));
    }
    auto buffer = std::make_shared<Buffer<Device, float>>(size);
    const auto step = static_cast<int64_t>(pattern.size());
    for (int64_t begin = 0; begin < size; begin += step) {
      copy_from_host(stream_, buffer->view().subview({begin, std::min(size, begin + step)}),
                     pattern.data());
    }
    stream_.synchronize();
    return buffer;
  }

  Stream& stream_;
};

}  // namespace lockstep
