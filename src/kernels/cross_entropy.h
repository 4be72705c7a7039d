#pragma once

#include <cstdint>

#include "core/device/cpu_device.h"

namespace lockstep {

/// losses[i] = log(sum over v < vocabulary of exp(logits[i, v])) - logits[i, targets[i]], in nats,
/// and, when `gradient` is set, logits are replaced by their gradient (softmax - one-hot) *
/// gradient_scale in the same pass; the padded columns v >= vocabulary take no part and get the
/// gradient 0.
template <class Device>
struct CrossEntropy {
  int64_t rows = 0;
  int64_t vocabulary = 0;         ///< symbols that exist
  int64_t padded_vocabulary = 0;  ///< columns of logits
  bool gradient = false;
  float gradient_scale = 1.0F;
  View<Device, float> losses;           ///< (rows)
  View<Device, float> logits;           ///< (rows, padded_vocabulary)
  View<Device, const int32_t> targets;  ///< (rows), each in [0, vocabulary)
};
void cross_entropy(CpuStream& stream, const CrossEntropy<CpuDevice>& args);

}  // namespace lockstep
