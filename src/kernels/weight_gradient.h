#pragma once

#include <cstdint>
#include <optional>

#include "core/device/cpu_device.h"

namespace lockstep {

/// A LayerNorm's output that nobody kept, as it follows from the input:
/// (x - mean) * rstd * gamma + beta.
template <class Device>
struct NormedRows {
  View<Device, const float> mean;   ///< (rows)
  View<Device, const float> rstd;   ///< (rows)
  View<Device, const float> gamma;  ///< (in)
  View<Device, const float> beta;   ///< (in)
  View<Device, float> memory;       ///< (rows, in): for the output, where the op needs it whole
};

/// The gradients of weight and bias of a linear layer y = x · weightᵀ + bias:
///   weight (+)= dyᵀ · x
///   bias   (+)= sum over rows of dy
/// With `norm` the layer's input is not `x` but a norm's output, of `x`; it is computed again, to
/// the bits of layernorm_forward. As of gemm and column_sum, products and sums are finished before
/// they are added when `accumulate` is set.
template <class Device>
struct WeightGradient {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  View<Device, float> weight;    ///< (out, in)
  View<Device, float> bias;      ///< (out)
  View<Device, const float> dy;  ///< (rows, out)
  View<Device, const float> x;   ///< (rows, in)
  std::optional<NormedRows<Device>> norm = {};
  bool accumulate = false;
};
void weight_gradient(CpuStream& stream, const WeightGradient<CpuDevice>& args);

}  // namespace lockstep
