#pragma once

#include <cstdint>

#include "core/device/cpu_device.h"

namespace lockstep {

/// The epsilon of GPT-2, nanoGPT and llm.c.
inline constexpr float kLayerNormEpsilon = 1e-5F;

/// y = (x - mean) * rstd * gamma + beta for each row (Ba, Kiros and Hinton, 2016); saves mean and
/// rstd for backward. Variance is the biased one, taken in a second pass over the row so that a
/// large mean does not cancel.
template <class Device>
struct LayerNormForward {
  int64_t rows = 0;
  int64_t channels = 0;
  View<Device, float> y;            ///< (rows, channels)
  View<Device, float> mean;         ///< (rows)
  View<Device, float> rstd;         ///< (rows)
  View<Device, const float> x;      ///< (rows, channels)
  View<Device, const float> gamma;  ///< (channels)
  View<Device, const float> beta;   ///< (channels)
};
void layernorm_forward(CpuStream& stream, const LayerNormForward<CpuDevice>& args);

/// With x̂ = (x - mean) * rstd and g = dy * gamma:
///   dx     += rstd * (g - mean(g) - x̂ * mean(g * x̂))
///   dgamma (+)= sum over rows of dy * x̂
///   dbeta  (+)= sum over rows of dy
/// dx is always added to: the residual stream's gradient is already there. The sums over rows are
/// finished before they are added when `accumulate` is set.
template <class Device>
struct LayerNormBackward {
  int64_t rows = 0;
  int64_t channels = 0;
  View<Device, float> dx;           ///< (rows, channels), added to
  View<Device, float> dgamma;       ///< (channels)
  View<Device, float> dbeta;        ///< (channels)
  View<Device, const float> dy;     ///< (rows, channels)
  View<Device, const float> x;      ///< (rows, channels)
  View<Device, const float> mean;   ///< (rows)
  View<Device, const float> rstd;   ///< (rows)
  View<Device, const float> gamma;  ///< (channels)
  bool accumulate = false;          ///< of dgamma and dbeta
};
void layernorm_backward(CpuStream& stream, const LayerNormBackward<CpuDevice>& args);

}  // namespace lockstep
