#pragma once

#include <cstdint>

#include "core/device/view.h"
#include "core/model/activation_plan.h"
#include "core/model/gpt_config.h"
#include "core/model/gpt_tensors.h"
#include "core/model/linear_impl.h"
#include "kernels/attention.h"
#include "kernels/layernorm.h"

namespace lockstep {

/// The tokens of one call: `batch` sequences of `time`.
struct BatchShape {
  int64_t batch = 0;
  int64_t time = 0;
  int64_t rows() const { return batch * time; }
};

/// One pass over pre-norm transformer layers, forward or backward:
///   middle = input + projection(attention(ln_1(input)))
///   output = middle + projection(gelu(mlp(ln_2(middle))))
/// Enqueues ops on the stream and nothing else.
template <class Device>
class BlockPass {
 public:
  using Stream = typename Device::Stream;
  using Parameters = BlockTensors<View<Device, const float>>;
  using Gradients = BlockTensors<View<Device, float>>;

  BlockPass(Stream& stream, const GptConfig& config, BatchShape shape,
            View<Device, float> workspace)
      : stream_(stream),
        rows_(shape.rows()),
        channels_(config.n_embd),
        gelu_(config.gelu),
        attention_{.batch = shape.batch,
                   .time = shape.time,
                   .heads = config.n_head,
                   .head_dim = config.head_dim()},
        workspace_(workspace) {}

  /// `output` may be the layer's own input when nothing is kept for backward.
  void forward(const Parameters& parameters, const LayerActivations& kept, Range output) {
    attention_input(parameters, kept);
    attention_forward(stream_, AttentionForward<Device>{.shape = attention_,
                                                        .out = at(kept.attention_out),
                                                        .lse = at(kept.lse),
                                                        .qkv = at(kept.qkv)});
    attention_output(parameters, kept);
    mlp_branch(parameters, kept, output);
  }

  /// Takes the gradient of the output in scratch.residual_gradient and leaves there the gradient of
  /// the input. The layer's weight gradients are complete with the last op.
  void backward(const Parameters& parameters, const Gradients& gradients,
                const LayerActivations& kept, const BackwardScratch& scratch, bool accumulate) {
    mlp_branch_backward(parameters, gradients, kept, scratch, accumulate);
    attention_branch_backward(parameters, gradients, kept, scratch, accumulate);
  }

  /// What precedes attention: norm and q, k, v.
  void attention_input(const Parameters& parameters, const LayerActivations& kept) {
    norm(parameters.ln_1, kept.ln_1, kept.input);
    linear_forward(stream_, LinearForward<Device>{.rows = rows_,
                                                  .in = channels_,
                                                  .out = 3 * channels_,
                                                  .y = at(kept.qkv),
                                                  .x = at(kept.ln_1.out),
                                                  .parameters = parameters.qkv});
  }

  /// What follows attention: projection and residual.
  void attention_output(const Parameters& parameters, const LayerActivations& kept) {
    linear_forward(stream_, LinearForward<Device>{.rows = rows_,
                                                  .in = channels_,
                                                  .out = channels_,
                                                  .y = at(kept.middle),
                                                  .x = at(kept.attention_out),
                                                  .parameters = parameters.attention_projection,
                                                  .residual = at(kept.input)});
  }

  /// `output` as in forward.
  void mlp_branch(const Parameters& parameters, const LayerActivations& kept, Range output) {
    norm(parameters.ln_2, kept.ln_2, kept.middle);
    linear_forward(stream_, LinearForward<Device>{.rows = rows_,
                                                  .in = channels_,
                                                  .out = 4 * channels_,
                                                  .y = at(kept.gelu_out),
                                                  .x = at(kept.ln_2.out),
                                                  .parameters = parameters.mlp,
                                                  .pre_activation = at(kept.pre_activation),
                                                  .gelu = gelu_});
    linear_forward(stream_, LinearForward<Device>{.rows = rows_,
                                                  .in = 4 * channels_,
                                                  .out = channels_,
                                                  .y = at(output),
                                                  .x = at(kept.gelu_out),
                                                  .parameters = parameters.mlp_projection,
                                                  .residual = at(kept.middle)});
  }

  void norm(const WeightAndBias<View<Device, const float>>& parameters, const NormActivations& kept,
            Range input) {
    layernorm_forward(stream_, LayerNormForward<Device>{.rows = rows_,
                                                        .channels = channels_,
                                                        .y = at(kept.out),
                                                        .mean = at(kept.mean),
                                                        .rstd = at(kept.rstd),
                                                        .x = at(input),
                                                        .gamma = parameters.weight,
                                                        .beta = parameters.bias});
  }
  /// The logits: the tied projection of the last norm.
  void head(const WeightAndBias<View<Device, const float>>& ln_f, View<Device, const float> wte,
            const HeadActivations& kept) {
    norm(ln_f, kept.ln_f, kept.input);
    gemm(stream_, Gemm<Device>{.m = rows_,
                               .n = wte.size() / channels_,
                               .k = channels_,
                               .trans_b = Transpose::kYes,
                               .a = at(kept.ln_f.out),
                               .b = wte,
                               .c = at(kept.logits)});
  }
  /// From scratch.branch_gradient, added to scratch.residual_gradient.
  void norm_backward(const WeightAndBias<View<Device, const float>>& parameters,
                     const WeightAndBias<View<Device, float>>& gradients,
                     const NormActivations& kept, Range input, const BackwardScratch& scratch,
                     bool accumulate) {
    layernorm_backward(stream_, LayerNormBackward<Device>{.rows = rows_,
                                                          .channels = channels_,
                                                          .dx = at(scratch.residual_gradient),
                                                          .dgamma = gradients.weight,
                                                          .dbeta = gradients.bias,
                                                          .dy = at(scratch.branch_gradient),
                                                          .x = at(input),
                                                          .mean = at(kept.mean),
                                                          .rstd = at(kept.rstd),
                                                          .gamma = parameters.weight,
                                                          .accumulate = accumulate});
  }

 private:
  View<Device, float> at(Range range) const { return workspace_.subview(range); }

  void mlp_branch_backward(const Parameters& parameters, const Gradients& gradients,
                           const LayerActivations& kept, const BackwardScratch& scratch,
                           bool accumulate) {
    linear_backward(stream_, LinearBackward<Device>{.rows = rows_,
                                                    .in = 4 * channels_,
                                                    .out = channels_,
                                                    .dx = at(scratch.wide_gradient),
                                                    .gradients = gradients.mlp_projection,
                                                    .dy = at(scratch.residual_gradient),
                                                    .x = at(kept.gelu_out),
                                                    .weight = parameters.mlp_projection.weight,
                                                    .gelu_input = at(kept.pre_activation),
                                                    .gelu = gelu_,
                                                    .accumulate = accumulate});
    linear_backward(stream_, LinearBackward<Device>{.rows = rows_,
                                                    .in = channels_,
                                                    .out = 4 * channels_,
                                                    .dx = at(scratch.branch_gradient),
                                                    .gradients = gradients.mlp,
                                                    .dy = at(scratch.wide_gradient),
                                                    .x = at(kept.ln_2.out),
                                                    .weight = parameters.mlp.weight,
                                                    .accumulate = accumulate});
    norm_backward(parameters.ln_2, gradients.ln_2, kept.ln_2, kept.middle, scratch, accumulate);
  }

  void attention_branch_backward(const Parameters& parameters, const Gradients& gradients,
                                 const LayerActivations& kept, const BackwardScratch& scratch,
                                 bool accumulate) {
    linear_backward(stream_,
                    LinearBackward<Device>{.rows = rows_,
                                           .in = channels_,
                                           .out = channels_,
                                           .dx = at(scratch.branch_gradient),
                                           .gradients = gradients.attention_projection,
                                           .dy = at(scratch.residual_gradient),
                                           .x = at(kept.attention_out),
                                           .weight = parameters.attention_projection.weight,
                                           .accumulate = accumulate});
    attention_backward(stream_, AttentionBackward<Device>{.shape = attention_,
                                                          .dqkv = at(scratch.wide_gradient),
                                                          .delta = at(scratch.attention_delta),
                                                          .dout = at(scratch.branch_gradient),
                                                          .out = at(kept.attention_out),
                                                          .lse = at(kept.lse),
                                                          .qkv = at(kept.qkv)});
    linear_backward(stream_, LinearBackward<Device>{.rows = rows_,
                                                    .in = channels_,
                                                    .out = 3 * channels_,
                                                    .dx = at(scratch.branch_gradient),
                                                    .gradients = gradients.qkv,
                                                    .dy = at(scratch.wide_gradient),
                                                    .x = at(kept.ln_1.out),
                                                    .weight = parameters.qkv.weight,
                                                    .accumulate = accumulate});
    norm_backward(parameters.ln_1, gradients.ln_1, kept.ln_1, kept.input, scratch, accumulate);
  }

  Stream& stream_;
  int64_t rows_;
  int64_t channels_;
  Gelu gelu_;
  AttentionShape attention_;
  View<Device, float> workspace_;
};

}  // namespace lockstep
