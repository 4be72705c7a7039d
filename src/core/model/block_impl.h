#pragma once

#include <cstdint>

#include "core/model/activation_plan.h"
#include "core/model/gpt_tensors.h"
#include "core/model/linear_impl.h"
#include "core/model/pass_impl.h"
#include "kernels/attention.h"

// One pre-norm transformer layer, forward and backward:
//   middle = input + projection(attention(ln_1(input)))
//   output = middle + projection(gelu(mlp(ln_2(middle))))

namespace lockstep {

template <class Device>
using BlockParameters = BlockTensors<View<Device, const float>>;
template <class Device>
using BlockGradients = BlockTensors<View<Device, float>>;

template <class Device>
AttentionShape attention_shape(const Pass<Device>& pass) {
  return {.batch = pass.shape.batch,
          .time = pass.shape.time,
          .heads = pass.config.n_head,
          .head_dim = pass.config.head_dim()};
}

/// The output of one of the layer's norms, for the layer behind it.
template <class Device>
NormedRows<Device> normed_rows(const Pass<Device>& pass, const Parameter<Device>& norm,
                               const NormActivations& kept) {
  return {.mean = pass.at(kept.mean),
          .rstd = pass.at(kept.rstd),
          .gamma = norm.weight,
          .beta = norm.bias,
          .memory = pass.at(kept.out)};
}

/// What precedes attention: norm and q, k, v.
template <class Device>
void attention_input(const Pass<Device>& pass, const BlockParameters<Device>& parameters,
                     const LayerActivations& kept) {
  norm_forward(pass, parameters.ln_1, kept.ln_1, kept.input);
  linear_forward(pass.stream, LinearForward<Device>{.rows = pass.rows(),
                                                    .in = pass.channels(),
                                                    .out = 3 * pass.channels(),
                                                    .y = pass.at(kept.qkv),
                                                    .x = pass.at(kept.ln_1.out),
                                                    .parameters = parameters.qkv});
}

/// What follows attention: projection and residual.
template <class Device>
void attention_output(const Pass<Device>& pass, const BlockParameters<Device>& parameters,
                      const LayerActivations& kept) {
  linear_forward(pass.stream, LinearForward<Device>{.rows = pass.rows(),
                                                    .in = pass.channels(),
                                                    .out = pass.channels(),
                                                    .y = pass.at(kept.middle),
                                                    .x = pass.at(kept.attention_out),
                                                    .parameters = parameters.attention_projection,
                                                    .residual = pass.at(kept.input)});
}

/// `output` may be the layer's own input when nothing is kept for backward.
template <class Device>
void mlp_forward(const Pass<Device>& pass, const BlockParameters<Device>& parameters,
                 const LayerActivations& kept, Range output) {
  norm_forward(pass, parameters.ln_2, kept.ln_2, kept.middle);
  linear_forward(pass.stream,
                 LinearForward<Device>{.rows = pass.rows(),
                                       .in = pass.channels(),
                                       .out = 4 * pass.channels(),
                                       .y = pass.at(kept.gelu_out),
                                       .x = pass.at(kept.ln_2.out),
                                       .parameters = parameters.mlp,
                                       .gelu = pass.config.gelu,
                                       .gelu_derivative = pass.at(kept.gelu_derivative)});
  linear_forward(pass.stream, LinearForward<Device>{.rows = pass.rows(),
                                                    .in = 4 * pass.channels(),
                                                    .out = pass.channels(),
                                                    .y = pass.at(output),
                                                    .x = pass.at(kept.gelu_out),
                                                    .parameters = parameters.mlp_projection,
                                                    .residual = pass.at(kept.middle)});
}

template <class Device>
void block_forward(const Pass<Device>& pass, const BlockParameters<Device>& parameters,
                   const LayerActivations& kept, Range output) {
  attention_input(pass, parameters, kept);
  {
    const TraceRange trace("attention forward");
    attention_forward(pass.stream, AttentionForward<Device>{.shape = attention_shape(pass),
                                                            .out = pass.at(kept.attention_out),
                                                            .lse = pass.at(kept.lse),
                                                            .qkv = pass.at(kept.qkv)});
  }
  attention_output(pass, parameters, kept);
  mlp_forward(pass, parameters, kept, output);
}

/// Returns the point of the branch behind which scratch.wide_gradient is free.
template <class Device>
typename Branch<Device>::Point mlp_backward(const Pass<Device>& pass,
                                            const BlockParameters<Device>& parameters,
                                            const BlockGradients<Device>& gradients,
                                            const LayerActivations& kept,
                                            const BackwardScratch& scratch, bool accumulate) {
  const auto projection =
      linear_backward(pass, LinearBackward<Device>{.rows = pass.rows(),
                                                   .in = 4 * pass.channels(),
                                                   .out = pass.channels(),
                                                   .dx = pass.at(scratch.wide_gradient),
                                                   .gradients = gradients.mlp_projection,
                                                   .dy = pass.at(scratch.residual_gradient),
                                                   .x = pass.at(kept.gelu_out),
                                                   .weight = parameters.mlp_projection.weight,
                                                   .x_derivative = pass.at(kept.gelu_derivative),
                                                   .accumulate = accumulate});
  const auto hidden = linear_backward(
      pass, LinearBackward<Device>{.rows = pass.rows(),
                                   .in = pass.channels(),
                                   .out = 4 * pass.channels(),
                                   .dx = pass.at(scratch.branch_gradient),
                                   .gradients = gradients.mlp,
                                   .dy = pass.at(scratch.wide_gradient),
                                   .x = pass.at(kept.middle),
                                   .norm = normed_rows(pass, parameters.ln_2, kept.ln_2),
                                   .weight = parameters.mlp.weight,
                                   .accumulate = accumulate});
  pass.branch->join(pass.stream, projection);  // reads residual_gradient, which now changes
  norm_backward(pass, parameters.ln_2, gradients.ln_2, kept.ln_2, kept.middle, scratch, accumulate);
  return hidden;
}

/// `wide_free` is the point behind which scratch.wide_gradient may be overwritten.
template <class Device>
void attention_branch_backward(const Pass<Device>& pass, const BlockParameters<Device>& parameters,
                               const BlockGradients<Device>& gradients,
                               const LayerActivations& kept, const BackwardScratch& scratch,
                               typename Branch<Device>::Point wide_free, bool accumulate) {
  const auto projection =
      linear_backward(pass, LinearBackward<Device>{.rows = pass.rows(),
                                                   .in = pass.channels(),
                                                   .out = pass.channels(),
                                                   .dx = pass.at(scratch.branch_gradient),
                                                   .gradients = gradients.attention_projection,
                                                   .dy = pass.at(scratch.residual_gradient),
                                                   .x = pass.at(kept.attention_out),
                                                   .weight = parameters.attention_projection.weight,
                                                   .accumulate = accumulate});
  pass.branch->join(pass.stream, wide_free);
  {
    const TraceRange trace("attention backward");
    attention_backward(pass.stream,
                       AttentionBackward<Device>{.shape = attention_shape(pass),
                                                 .dqkv = pass.at(scratch.wide_gradient),
                                                 .delta = pass.at(scratch.attention_delta),
                                                 .dout = pass.at(scratch.branch_gradient),
                                                 .out = pass.at(kept.attention_out),
                                                 .lse = pass.at(kept.lse),
                                                 .qkv = pass.at(kept.qkv)});
  }
  linear_backward(pass,
                  LinearBackward<Device>{.rows = pass.rows(),
                                         .in = pass.channels(),
                                         .out = 3 * pass.channels(),
                                         .dx = pass.at(scratch.branch_gradient),
                                         .gradients = gradients.qkv,
                                         .dy = pass.at(scratch.wide_gradient),
                                         .x = pass.at(kept.input),
                                         .norm = normed_rows(pass, parameters.ln_1, kept.ln_1),
                                         .weight = parameters.qkv.weight,
                                         .accumulate = accumulate});
  pass.branch->join(pass.stream, projection);
  norm_backward(pass, parameters.ln_1, gradients.ln_1, kept.ln_1, kept.input, scratch, accumulate);
  pass.branch->join(pass.stream);  // the layer's gradients are complete, and wide_gradient is free
}

/// Takes the gradient of the output in scratch.residual_gradient and leaves there the gradient of
/// the input. The layer's gradients are complete with the last op.
template <class Device>
void block_backward(const Pass<Device>& pass, const BlockParameters<Device>& parameters,
                    const BlockGradients<Device>& gradients, const LayerActivations& kept,
                    const BackwardScratch& scratch, bool accumulate) {
  const auto wide_free = mlp_backward(pass, parameters, gradients, kept, scratch, accumulate);
  attention_branch_backward(pass, parameters, gradients, kept, scratch, wide_free, accumulate);
}

}  // namespace lockstep
