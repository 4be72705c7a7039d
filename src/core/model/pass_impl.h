#pragma once

#include <cstdint>

#include "core/device/branch.h"
#include "core/device/trace.h"
#include "core/device/view.h"
#include "core/model/activation_plan.h"
#include "core/model/gpt_config.h"
#include "core/model/gpt_tensors.h"
#include "kernels/layernorm.h"

namespace lockstep {

/// The tokens of one call: `batch` sequences of `time`.
struct BatchShape {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t rows() const { return batch * time; }
};

/// What every step of one pass over the model shares. The steps are free functions that enqueue ops
/// on the stream and do nothing else.
template <class Device>
struct Pass {
  typename Device::Stream& stream;
  const GptConfig& config;
  BatchShape shape;
  View<Device, float> workspace;  ///< laid out by an ActivationPlan
  Branch<Device>* branch;         ///< for gradients that nothing waits for; backward only

  int64_t rows() const { return shape.rows(); }
  int64_t channels() const { return config.n_embd; }
  View<Device, float> at(Range range) const { return workspace.subview(range); }
};

template <class Device>
using Parameter = WeightAndBias<View<Device, const float>>;
template <class Device>
using Gradient = WeightAndBias<View<Device, float>>;

template <class Device>
void norm_forward(const Pass<Device>& pass, const Parameter<Device>& parameter,
                  const NormActivations& kept, Range input) {
  const TraceRange trace("layernorm forward");
  layernorm_forward(pass.stream, LayerNormForward<Device>{.rows = pass.rows(),
                                                          .channels = pass.channels(),
                                                          .y = pass.at(kept.out),
                                                          .mean = pass.at(kept.mean),
                                                          .rstd = pass.at(kept.rstd),
                                                          .x = pass.at(input),
                                                          .gamma = parameter.weight,
                                                          .beta = parameter.bias});
}

/// From scratch.branch_gradient; the input's gradient is added to scratch.residual_gradient.
template <class Device>
void norm_backward(const Pass<Device>& pass, const Parameter<Device>& parameter,
                   const Gradient<Device>& gradient, const NormActivations& kept, Range input,
                   const BackwardScratch& scratch, bool accumulate) {
  const TraceRange trace("layernorm backward");
  layernorm_backward(pass.stream,
                     LayerNormBackward<Device>{.rows = pass.rows(),
                                               .channels = pass.channels(),
                                               .dx = pass.at(scratch.residual_gradient),
                                               .dgamma = gradient.weight,
                                               .dbeta = gradient.bias,
                                               .dy = pass.at(scratch.branch_gradient),
                                               .x = pass.at(input),
                                               .mean = pass.at(kept.mean),
                                               .rstd = pass.at(kept.rstd),
                                               .gamma = parameter.weight,
                                               .accumulate = accumulate});
}

}  // namespace lockstep
