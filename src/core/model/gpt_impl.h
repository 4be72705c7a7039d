#pragma once

#include <memory>

#include "core/device/buffer.h"
#include "core/model/activation_plan.h"
#include "core/model/block_impl.h"
#include "core/model/gpt.h"
#include "core/model/gpt_tensors.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/reduce.h"

// The body of Gpt, for the one translation unit per device that instantiates it. Every line
// enqueues an op on the stream; nothing here reads a result.

namespace lockstep {

template <class Device>
struct Gpt<Device>::Impl {
  using ConstView = View<Device, const float>;

  /// What the workspace is left with: `kKept` is what backward can start from.
  enum class Activations { kNone, kKept };

  Impl(const GptConfig& architecture, BatchShape largest, ConstView parameter_arena,
       View<Device, float> gradient_arena)
      : config(architecture),
        table(config),
        max_shape(largest),
        plan(config, largest.batch, largest.time, ActivationPlan::Purpose::kTraining),
        parameters(table, config, parameter_arena),
        gradients(table, config, gradient_arena),
        workspace(plan.size()) {}

  View<Device, float> at(Range range) { return workspace.view().subview(range); }

  BatchShape shape_of(int64_t size) const {
    const bool one = size <= max_shape.time;
    const BatchShape result = {one ? 1 : size / max_shape.time, one ? size : max_shape.time};
    LOCKSTEP_CHECK(size > 0 && result.rows() == size && result.batch <= max_shape.batch,
                   "{} tokens for a model of up to {} sequences of {}", size, max_shape.batch,
                   max_shape.time);
    return result;
  }

  /// Up to the logits. Without `keep`, all layers take the first one's place in the workspace, and
  /// the residual stream stays where it is: a smaller set stays in the caches.
  void run_layers(Stream& stream, View<Device, const int32_t> tokens, Activations keep) {
    shape = shape_of(tokens.size());
    const auto kept = [&](int64_t layer) -> const LayerActivations& {
      return plan.layer(keep == Activations::kKept ? layer : 0);
    };
    embedding_forward(stream, EmbeddingForward<Device>{.batch = shape.batch,
                                                       .time = shape.time,
                                                       .channels = config.n_embd,
                                                       .x = at(kept(0).input),
                                                       .tokens = tokens,
                                                       .wte = parameters.wte,
                                                       .wpe = parameters.wpe});
    BlockPass<Device> pass(stream, config, shape, workspace.view());
    for (int64_t layer = 0; layer < config.n_layer; ++layer) {
      const bool last = layer + 1 == config.n_layer;
      pass.forward(parameters.blocks[static_cast<size_t>(layer)], kept(layer),
                   last ? plan.head().input : kept(layer + 1).input);
    }
    pass.head(parameters.ln_f, parameters.wte, plan.head());
  }

  /// The mean loss; with `gradient`, the logits become their gradient.
  void loss(Stream& stream, View<Device, const int32_t> targets, bool gradient,
            float gradient_scale, View<Device, float> out) {
    const View<Device, float> losses = at(plan.head().losses).subview({0, shape.rows()});
    cross_entropy(stream, CrossEntropy<Device>{
                              .rows = shape.rows(),
                              .vocabulary = config.vocab_size,
                              .padded_vocabulary = config.padded_vocab(),
                              .gradient = gradient,
                              .gradient_scale = gradient_scale / static_cast<float>(shape.rows()),
                              .losses = losses,
                              .logits = at(plan.head().logits),
                              .targets = targets});
    sum(stream,
        Sum<Device>{.out = out, .x = losses, .scale = 1.0 / static_cast<double>(shape.rows())});
  }

  /// Starts the gradient of the residual stream behind the last layer.
  void final_norm_backward(Stream& stream, BlockPass<Device>& pass, bool accumulate) {
    const BackwardScratch& scratch = plan.scratch();
    gemm(stream, Gemm<Device>{.m = shape.rows(),
                              .n = config.n_embd,
                              .k = config.padded_vocab(),
                              .a = at(plan.head().logits),
                              .b = parameters.wte,
                              .c = at(scratch.branch_gradient)});
    set_zero(stream, at(scratch.residual_gradient));
    pass.norm_backward(parameters.ln_f, gradients.ln_f, plan.head().ln_f, plan.head().input,
                       scratch, accumulate);
  }

  /// The head's share of wte's gradient comes after all layers, not first: the layers' ranges are
  /// ready earlier by this product, which then covers their reduction.
  void embeddings_backward(Stream& stream, bool accumulate) {
    const BackwardScratch& scratch = plan.scratch();
    gemm(stream, Gemm<Device>{.m = config.padded_vocab(),
                              .n = config.n_embd,
                              .k = shape.rows(),
                              .trans_a = Transpose::kYes,
                              .a = at(plan.head().logits),
                              .b = at(plan.head().ln_f.out),
                              .c = at(scratch.head_gradient)});
    embedding_backward(stream, EmbeddingBackward<Device>{.batch = shape.batch,
                                                         .time = shape.time,
                                                         .channels = config.n_embd,
                                                         .vocabulary = config.padded_vocab(),
                                                         .dwte = gradients.wte,
                                                         .dwpe = gradients.wpe,
                                                         .head = at(scratch.head_gradient),
                                                         .dx = at(scratch.residual_gradient),
                                                         .tokens = kept_tokens,
                                                         .accumulate = accumulate});
  }

  GptConfig config;
  ParamTable table;
  BatchShape max_shape;
  ActivationPlan plan;
  GptTensors<ConstView> parameters;
  GptTensors<View<Device, float>> gradients;
  Buffer<Device, float> workspace;
  BatchShape shape;                         ///< of the last call
  Activations state = Activations::kNone;   ///< after the last call
  View<Device, const int32_t> kept_tokens;  ///< of the last forward
};

template <class Device>
Gpt<Device>::Gpt(const GptConfig& config, int64_t batch, int64_t time,
                 View<Device, const float> parameters, View<Device, float> gradients)
    : impl_(std::make_unique<Impl>(config, BatchShape{batch, time}, parameters, gradients)) {
  LOCKSTEP_CHECK(batch >= 1 && time >= 1 && time <= config.block_size,
                 "batch {}, time {}, block size {}", batch, time, config.block_size);
}

template <class Device>
Gpt<Device>::~Gpt() = default;

template <class Device>
void Gpt<Device>::evaluate(Stream& stream, View<Device, const int32_t> tokens,
                           View<Device, const int32_t> targets, View<Device, float> loss) {
  impl_->state = Impl::Activations::kNone;
  impl_->run_layers(stream, tokens, Impl::Activations::kNone);
  impl_->loss(stream, targets, false, 0.0F, loss);
}

template <class Device>
void Gpt<Device>::forward(Stream& stream, View<Device, const int32_t> tokens,
                          View<Device, const int32_t> targets, float gradient_scale,
                          View<Device, float> loss) {
  impl_->run_layers(stream, tokens, Impl::Activations::kKept);
  impl_->loss(stream, targets, true, gradient_scale, loss);
  impl_->kept_tokens = tokens;
  impl_->state = Impl::Activations::kKept;
}

template <class Device>
void Gpt<Device>::backward(Stream& stream, bool accumulate, const RangeReady& ready) {
  Impl& m = *impl_;
  LOCKSTEP_CHECK(m.state == Impl::Activations::kKept, "backward must follow its own forward");
  m.state = Impl::Activations::kNone;
  const auto announce = [&](Range range) {
    if (ready) {
      ready(range);
    }
  };
  BlockPass<Device> pass(stream, m.config, m.shape, m.workspace.view());
  m.final_norm_backward(stream, pass, accumulate);
  announce(m.table.final_norm());
  for (int64_t layer = m.config.n_layer - 1; layer >= 0; --layer) {
    const auto index = static_cast<size_t>(layer);
    pass.backward(m.parameters.blocks[index], m.gradients.blocks[index], m.plan.layer(layer),
                  m.plan.scratch(), accumulate);
    announce(m.table.layer(layer));
  }
  m.embeddings_backward(stream, accumulate);
  announce(m.table.embeddings());
}

template <class Device>
View<Device, const float> Gpt<Device>::logits(Stream& stream, View<Device, const int32_t> tokens) {
  impl_->state = Impl::Activations::kNone;
  impl_->run_layers(stream, tokens, Impl::Activations::kNone);
  return impl_->at(impl_->plan.head().logits)
      .subview({0, impl_->shape.rows() * impl_->config.padded_vocab()});
}

template <class Device>
const GptConfig& Gpt<Device>::config() const {
  return impl_->config;
}

template <class Device>
const ParamTable& Gpt<Device>::table() const {
  return impl_->table;
}

template <class Device>
int64_t Gpt<Device>::activation_bytes() const {
  return impl_->plan.size() * static_cast<int64_t>(sizeof(float));
}

}  // namespace lockstep
