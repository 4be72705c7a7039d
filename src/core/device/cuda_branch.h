#pragma once

#include <optional>

#include "core/device/branch.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// A stream of its own, with scratch memory of its own. When the stream that it forks from is being
/// captured, so is the branch, into the same graph.
template <>
class Branch<CudaDevice> {
 public:
  CudaStream& fork(CudaStream& stream) {
    if (!queue_) {
      queue_.emplace(stream.precision());
    }
    forked_.record(stream);
    queue_->wait(forked_);
    return *queue_;
  }
  void join(CudaStream& stream) {
    joined_.record(*queue_);
    stream.wait(joined_);
  }

 private:
  std::optional<CudaStream> queue_;  ///< made by the first fork, on its GPU and in its precision
  CudaEvent forked_;
  CudaEvent joined_;
};

}  // namespace lockstep
