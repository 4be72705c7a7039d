#pragma once

#include "core/device/cpu_device.h"

namespace lockstep {

/// What changes from step to step, in the device's memory so that a captured graph can be replayed.
struct AdamWStep {
  float learning_rate = 0;
  float bias_correction1 = 1;  ///< 1 - beta1^t, t counted from 1
  float bias_correction2 = 1;  ///< 1 - beta2^t
  float gradient_scale = 1;    ///< multiplies every gradient first: the clip factor
};

/// One AdamW update (Loshchilov and Hutter, 2019) of a run of parameters that share a weight decay:
///   g = gradient_scale * g; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g²
///   p = p - learning_rate * (m / bc1 / (sqrt(v / bc2) + epsilon) + weight_decay * p)
template <class Device>
struct AdamW {
  View<Device, float> parameters;
  View<Device, float> m;
  View<Device, float> v;
  View<Device, const float> gradients;
  View<Device, const AdamWStep> step;  ///< (1)
  float beta1 = 0.9F;
  float beta2 = 0.99F;
  float epsilon = 1e-8F;
  float weight_decay = 0;
};
void adamw(CpuStream& stream, const AdamW<CpuDevice>& args);

}  // namespace lockstep
