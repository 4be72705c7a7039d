#pragma once

#include <cstdint>

#include "core/device/cpu_device.h"

namespace lockstep {

/// The gradient of a linear layer's weight when the layer's input is a LayerNorm's output that
/// nobody kept:
///   c (+)= dyᵀ · y,  y = (x - mean) * rstd * gamma + beta
/// y is computed again, to the bits of layernorm_forward: on its way into the product where that
/// reads it through a copy anyway, else in `normed`. As of gemm, the product is finished before it
/// is added to c when `accumulate` is set.
template <class Device>
struct NormedProduct {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  View<Device, float> c;            ///< (out, in)
  View<Device, float> normed;       ///< (rows, in), for y; what it holds afterwards is undefined
  View<Device, const float> dy;     ///< (rows, out)
  View<Device, const float> x;      ///< (rows, in)
  View<Device, const float> mean;   ///< (rows)
  View<Device, const float> rstd;   ///< (rows)
  View<Device, const float> gamma;  ///< (in)
  View<Device, const float> beta;   ///< (in)
  bool accumulate = false;
};
void normed_product(CpuStream& stream, const NormedProduct<CpuDevice>& args);

}  // namespace lockstep
