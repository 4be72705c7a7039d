#pragma once

#include <cstdint>

#include "core/base/arena_shard.h"
#include "core/device/cpu_device.h"

namespace lockstep {

/// What changes from step to step, in the device's memory so that a captured graph can be replayed.
struct AdamWStep {
  float learning_rate = 0;
  float bias_correction1 = 1;  ///< 1 - beta1^t, t counted from 1
  float bias_correction2 = 1;  ///< 1 - beta2^t
  float gradient_scale = 1;    ///< multiplies every gradient first: the clip factor, see clip_scale
};

/// step.gradient_scale = min(1, grad_clip / (norm + 1e-6)) with norm = sqrt(squared_norm), in
/// double: what clips the global norm as PyTorch does. 1 when grad_clip is 0 (off), NaN when the
/// norm is not finite, clipping or not: adamw then leaves everything as it is.
template <class Device>
struct ClipScale {
  View<Device, AdamWStep> step;             ///< (1)
  View<Device, const double> squared_norm;  ///< (1)
  double grad_clip = 0;
};
void clip_scale(CpuStream& stream, const ClipScale<CpuDevice>& args);

/// Elements that share one decision on weight decay; every tensor of an arena starts at a multiple.
inline constexpr int64_t kDecayBlock = 64;

/// One AdamW update (Loshchilov and Hutter, 2019):
///   g = gradient_scale * g; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g²
///   p = p - learning_rate * (m / bc1 / (sqrt(v / bc2) + epsilon) + weight_decay * p)
/// Does nothing when gradient_scale is NaN: a step whose gradients are not finite changes no bit.
/// Of a shard's elements alone, whose moments lie one segment after another.
template <class Device>
struct AdamW {
  View<Device, float> parameters;
  View<Device, float> m;  ///< (shard.size(parameters.size())), as v
  View<Device, float> v;
  View<Device, const float> gradients;
  View<Device, const AdamWStep> step;  ///< (1)
  /// One byte for each kDecayBlock elements, the last of which may be short: 1 where weight_decay
  /// applies, 0 where it is 0. Empty: it applies to all.
  View<Device, const uint8_t> decays = {};
  float beta1 = 0.9F;
  float beta2 = 0.99F;
  float epsilon = 1e-8F;
  float weight_decay = 0;
  ArenaShard shard = {};
};
void adamw(CpuStream& stream, const AdamW<CpuDevice>& args);

}  // namespace lockstep
