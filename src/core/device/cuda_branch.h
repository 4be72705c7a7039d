#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "core/device/branch.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// A stream of its own, with scratch memory of its own. When the stream that it forks from is being
/// captured, so is the branch, into the same graph.
template <>
class Branch<CudaDevice> {
 public:
  explicit Branch(StreamPriority priority = StreamPriority::kNormal) : priority_(priority) {}

  CudaStream& fork(CudaStream& stream) {
    if (!queue_) {
      queue_.emplace(stream.precision(), priority_);
    }
    forked_.record(stream);
    queue_->wait(forked_);
    return *queue_;
  }

  using Point = int;  ///< index of an event
  static constexpr int kPoints = 8;
  Point point() {
    next_ = (next_ + 1) % kPoints;
    points_[static_cast<size_t>(next_)].record(*queue_);
    return next_;
  }
  void join(CudaStream& stream, Point point) { stream.wait(points_[static_cast<size_t>(point)]); }
  void join(CudaStream& stream) { join(stream, point()); }

 private:
  StreamPriority priority_;
  std::optional<CudaStream> queue_;  ///< made by the first fork, on its GPU and in its precision
  CudaEvent forked_;
  std::array<CudaEvent, kPoints> points_;
  int next_ = 0;
};

}  // namespace lockstep
