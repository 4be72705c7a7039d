#pragma once

#include "core/model/activation_plan.h"
#include "core/model/pass_impl.h"
#include "kernels/cross_entropy.h"
#include "kernels/gemm.h"
#include "kernels/reduce.h"

// Behind the last layer: the last norm, the projection tied to wte, the loss; and their gradients.

namespace lockstep {

template <class Device>
void head_forward(const Pass<Device>& pass, const Parameter<Device>& ln_f,
                  View<Device, const float> wte, const HeadActivations& kept) {
  const TraceRange trace("head forward");
  norm_forward(pass, ln_f, kept.ln_f, kept.input);
  gemm(pass.stream, Gemm<Device>{.m = pass.rows(),
                                 .n = pass.config.padded_vocab(),
                                 .k = pass.channels(),
                                 .trans_b = Transpose::kYes,
                                 .a = pass.at(kept.ln_f.out),
                                 .b = wte,
                                 .c = pass.at(kept.logits)});
}

template <class Device>
struct Loss {
  View<Device, float> mean;  ///< (1)
  View<Device, const int32_t> targets;
  bool gradient = false;  ///< replaces the logits by the gradient of gradient_scale * mean
  float gradient_scale = 1;
};

template <class Device>
void loss_forward(const Pass<Device>& pass, const HeadActivations& kept, const Loss<Device>& loss) {
  const TraceRange trace("loss");
  const View<Device, float> losses = pass.at(kept.losses).subview({0, pass.rows()});
  cross_entropy(pass.stream, CrossEntropy<Device>{.rows = pass.rows(),
                                                  .vocabulary = pass.config.vocab_size,
                                                  .padded_vocabulary = pass.config.padded_vocab(),
                                                  .gradient = loss.gradient,
                                                  .gradient_scale = loss.gradient_scale /
                                                                    static_cast<float>(pass.rows()),
                                                  .losses = losses,
                                                  .logits = pass.at(kept.logits),
                                                  .targets = loss.targets});
  sum(pass.stream,
      Sum<Device>{.out = loss.mean, .x = losses, .scale = 1.0 / static_cast<double>(pass.rows())});
}

/// From the logits' gradient to scratch.residual_gradient, and the last norm's gradients.
template <class Device>
void head_backward(const Pass<Device>& pass, const Parameter<Device>& ln_f,
                   const Gradient<Device>& ln_f_gradient, View<Device, const float> wte,
                   const HeadActivations& kept, const BackwardScratch& scratch, bool accumulate) {
  const TraceRange trace("head backward");
  gemm(pass.stream, Gemm<Device>{.m = pass.rows(),
                                 .n = pass.channels(),
                                 .k = pass.config.padded_vocab(),
                                 .a = pass.at(kept.logits),
                                 .b = wte,
                                 .c = pass.at(scratch.branch_gradient)});
  set_zero(pass.stream, pass.at(scratch.residual_gradient));
  norm_backward(pass, ln_f, ln_f_gradient, kept.ln_f, kept.input, scratch, accumulate);
}

/// The head's share of wte's gradient, from the logits' gradient to scratch.head_gradient. On the
/// branch, whose scratch memory for products of this form is there already; nothing is beside it.
template <class Device>
void head_share_backward(const Pass<Device>& pass, const HeadActivations& kept,
                         const BackwardScratch& scratch) {
  const TraceRange trace("head's share of wte");
  gemm(pass.branch->fork(pass.stream), Gemm<Device>{.m = pass.config.padded_vocab(),
                                                    .n = pass.channels(),
                                                    .k = pass.rows(),
                                                    .trans_a = Transpose::kYes,
                                                    .a = pass.at(kept.logits),
                                                    .b = pass.at(kept.ln_f.out),
                                                    .c = pass.at(scratch.head_gradient)});
  pass.branch->join(pass.stream);
}

}  // namespace lockstep
