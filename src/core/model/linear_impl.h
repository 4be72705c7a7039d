#pragma once

#include <cstdint>
#include <optional>

#include "core/device/view.h"
#include "core/model/gpt_tensors.h"
#include "core/model/pass_impl.h"
#include "kernels/gemm.h"
#include "kernels/normed_product.h"
#include "kernels/reduce.h"

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

/// A layer's input that is a LayerNorm's output, which was not kept.
template <class Device>
struct NormedInput {
  View<Device, float> normed;      ///< (rows, in): memory for it
  View<Device, const float> of;    ///< (rows, in)
  View<Device, const float> mean;  ///< (rows)
  View<Device, const float> rstd;  ///< (rows)
  Parameter<Device> norm;
};

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
  View<Device, const float> x = {};              ///< (rows, in), or none when it is x_norm
  std::optional<NormedInput<Device>> x_norm = {};
  View<Device, const float> weight;             ///< (out, in)
  View<Device, const float> x_derivative = {};  ///< (rows, in), or none: x = f(z) elementwise,
                                                ///< this is f'(z), and dx the gradient of z
  bool accumulate = false;                      ///< of gradients
};

template <class Device>
typename Branch<Device>::Point linear_backward(const Pass<Device>& pass,
                                               const LinearBackward<Device>& args) {
  const TraceRange trace("linear backward");
  auto& beside = pass.branch->fork(pass.stream);
  column_sum(beside, ColumnSum<Device>{.rows = args.rows,
                                       .columns = args.out,
                                       .out = args.gradients.bias,
                                       .in = args.dy,
                                       .accumulate = args.accumulate});
  if (args.x_norm) {
    normed_product(beside, NormedProduct<Device>{.rows = args.rows,
                                                 .in = args.in,
                                                 .out = args.out,
                                                 .c = args.gradients.weight,
                                                 .normed = args.x_norm->normed,
                                                 .dy = args.dy,
                                                 .x = args.x_norm->of,
                                                 .mean = args.x_norm->mean,
                                                 .rstd = args.x_norm->rstd,
                                                 .gamma = args.x_norm->norm.weight,
                                                 .beta = args.x_norm->norm.bias,
                                                 .accumulate = args.accumulate});
  } else {
    gemm(beside, Gemm<Device>{.m = args.out,
                              .n = args.in,
                              .k = args.rows,
                              .trans_a = Transpose::kYes,
                              .a = args.dy,
                              .b = args.x,
                              .c = args.gradients.weight,
                              .accumulate = args.accumulate});
  }
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
