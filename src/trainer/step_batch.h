#pragma once

#include <cstdint>

#include "core/device/buffer.h"

namespace lockstep {

/// The micro-batches of a rank's step, one behind the other, in memory of `Device`: all tokens,
/// then all targets.
template <class Device>
class StepBatch {
 public:
  StepBatch() = default;
  StepBatch(int64_t micro_steps, int64_t micro_tokens)
      : micro_steps_(micro_steps),
        micro_tokens_(micro_tokens),
        memory_(2 * micro_steps * micro_tokens) {}

  int64_t micro_steps() const { return micro_steps_; }
  int64_t micro_tokens() const { return micro_tokens_; }
  View<Device, int32_t> whole() { return memory_.view(); }
  View<Device, int32_t> tokens(int64_t micro) { return part(micro); }
  View<Device, int32_t> targets(int64_t micro) { return part(micro_steps_ + micro); }

 private:
  View<Device, int32_t> part(int64_t index) {
    return memory_.view().subview({index * micro_tokens_, (index + 1) * micro_tokens_});
  }

  int64_t micro_steps_ = 0;
  int64_t micro_tokens_ = 0;
  Buffer<Device, int32_t> memory_;
};

}  // namespace lockstep
