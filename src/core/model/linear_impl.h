#pragma once

#include <cstdint>
#include <optional>

#include "core/device/view.h"
#include "core/model/gpt_tensors.h"
#include "core/model/pass_impl.h"
#include "kernels/gemm.h"
#include "kernels/weight_gradient.h"

namespace lockstep {

/// y = x · weightᵀ + bias, with what gemm fuses behind it.
template <class Device>
struct LinearForward {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  View<Device, float> y;                                ///< (rows, out)
  View<Device, const float> x;                          ///< (rows, in)
  WeightAndBias<View<Device, const float>> parameters;  ///< (out, in), (out)
  View<Device, const float> residual = {};              ///< (rows, out), or none: added to y
  std::optional<Gelu> gelu = {};                        ///< applied to y
  View<Device, float> gelu_derivative = {};             ///< (rows, out), or none: keeps gelu'
};

template <class Device>
void linear_forward(typename Device::Stream& stream, const LinearForward<Device>& args) {
  const TraceRange trace("linear forward");
  gemm(stream, Gemm<Device>{.m = args.rows,
                            .n = args.out,
                            .k = args.in,
                            .trans_b = Transpose::kYes,
                            .a = args.x,
                            .b = args.parameters.weight,
                            .c = args.y,
                            .bias = args.parameters.bias,
                            .residual = args.residual,
                            .gelu = args.gelu,
                            .gelu_derivative = args.gelu_derivative});
}

/// The gradients of y = x · weightᵀ + bias. Those of weight and bias run on the branch, beside dx
/// and what follows it, up to the point that is returned: only behind it may dy and x be
/// overwritten and the gradients be read.
template <class Device>
struct LinearBackward {
  int64_t rows = 0;
  int64_t in = 0;
  int64_t out = 0;
  View<Device, float> dx;                        ///< (rows, in), overwritten
  WeightAndBias<View<Device, float>> gradients;  ///< (out, in), (out)
  View<Device, const float> dy;                  ///< (rows, out)
  View<Device, const float> x;                   ///< (rows, in)
  std::optional<NormedRows<Device>> norm = {};   ///< x is then what its output follows from
  View<Device, const float> weight;              ///< (out, in)
  View<Device, const float> x_derivative = {};   ///< (rows, in), or none: x = f(z) elementwise,
                                                 ///< this is f'(z), and dx the gradient of z
  bool accumulate = false;                       ///< of gradients
};

template <class Device>
typename Branch<Device>::Point linear_backward(const Pass<Device>& pass,
                                               const LinearBackward<Device>& args) {
  const TraceRange trace("linear backward");
  auto& beside = pass.branch->fork(pass.stream);
  weight_gradient(beside, WeightGradient<Device>{.rows = args.rows,
                                                 .in = args.in,
                                                 .out = args.out,
                                                 .weight = args.gradients.weight,
                                                 .bias = args.gradients.bias,
                                                 .dy = args.dy,
                                                 .x = args.x,
                                                 .norm = args.norm,
                                                 .accumulate = args.accumulate});
  const auto point = pass.branch->point();
  gemm(pass.stream, Gemm<Device>{.m = args.rows,
                                 .n = args.in,
                                 .k = args.out,
                                 .a = args.dy,
                                 .b = args.weight,
                                 .c = args.dx,
                                 .factor = args.x_derivative});
  return point;
}

}  // namespace lockstep
