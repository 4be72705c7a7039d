#pragma once

#include <memory>

#include "core/base/error.h"
#include "core/device/buffer.h"
#include "core/model/activation_plan.h"
#include "core/model/block_impl.h"
#include "core/model/gpt.h"
#include "core/model/gpt_tensors.h"
#include "core/model/head_impl.h"
#include "core/model/pass_impl.h"
#include "kernels/embedding.h"

// The body of Gpt, for the one translation unit per device that instantiates it. Every step
// enqueues ops on the stream; nothing here reads a result.

namespace lockstep {

template <class Device>
struct Gpt<Device>::Impl {
  /// What a call leaves behind in the workspace.
  enum class Keep { kNothing, kForBackward };

  Impl(const GptConfig& architecture, BatchShape largest, View<Device, const float> parameter_arena,
       View<Device, float> gradient_arena)
      : config(architecture),
        table(config),
        max_shape(largest),
        plan(config, largest.batch, largest.time, ActivationPlan::Purpose::kTraining),
        parameters(table, config, parameter_arena),
        gradients(table, config, gradient_arena),
        workspace(plan.size()) {}

  BatchShape shape_of(int64_t size) const {
    const bool one = size <= max_shape.time;
    const BatchShape result = {one ? 1 : size / max_shape.time, one ? size : max_shape.time};
    LOCKSTEP_CHECK(size > 0 && result.rows() == size && result.batch <= max_shape.batch,
                   "{} tokens for a model of up to {} sequences of {}", size, max_shape.batch,
                   max_shape.time);
    return result;
  }

  Pass<Device> pass(Stream& stream) { return {stream, config, shape, workspace.view(), &branch}; }

  /// Up to the logits. When nothing is kept, all layers take the first one's place in the workspace
  /// and the residual stream stays where it is, so that the caches hold it.
  void run_layers(Stream& stream, View<Device, const int32_t> tokens, Keep keep) {
    shape = shape_of(tokens.size());
    kept_tokens = keep == Keep::kForBackward ? tokens : View<Device, const int32_t>();
    const auto kept = [&](int64_t layer) -> const LayerActivations& {
      return plan.layer(keep == Keep::kForBackward ? layer : 0);
    };
    const Pass<Device> forward = pass(stream);
    const TraceRange whole("forward");
    embedding_forward(stream, EmbeddingForward<Device>{.batch = shape.batch,
                                                       .time = shape.time,
                                                       .channels = config.n_embd,
                                                       .x = forward.at(kept(0).input),
                                                       .tokens = tokens,
                                                       .wte = parameters.wte,
                                                       .wpe = parameters.wpe});
    for (int64_t layer = 0; layer < config.n_layer; ++layer) {
      const TraceRange trace("layer forward", layer);
      const bool last = layer + 1 == config.n_layer;
      block_forward(forward, parameters.blocks[static_cast<size_t>(layer)], kept(layer),
                    last ? plan.head().input : kept(layer + 1).input);
    }
    head_forward(forward, parameters.ln_f, parameters.wte, plan.head());
  }

  /// The head's share of wte's gradient comes after all layers, not first: the layers' ranges are
  /// ready earlier by this product, which then covers their reduction.
  void embeddings_backward(const Pass<Device>& backward, bool accumulate) {
    head_share_backward(backward, plan.head(), plan.scratch());
    embedding_backward(backward.stream, EmbeddingBackward<Device>{
                                            .batch = shape.batch,
                                            .time = shape.time,
                                            .channels = config.n_embd,
                                            .vocabulary = config.padded_vocab(),
                                            .dwte = gradients.wte,
                                            .dwpe = gradients.wpe,
                                            .head = backward.at(plan.scratch().head_gradient),
                                            .dx = backward.at(plan.scratch().residual_gradient),
                                            .tokens = kept_tokens,
                                            .accumulate = accumulate});
  }

  GptConfig config;
  ParamTable table;
  BatchShape max_shape;
  ActivationPlan plan;
  GptTensors<View<Device, const float>> parameters;
  GptTensors<View<Device, float>> gradients;
  Buffer<Device, float> workspace;
  Branch<Device> branch;
  BatchShape shape;                         ///< of the last call
  View<Device, const int32_t> kept_tokens;  ///< of a forward that no backward has followed yet
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
  impl_->run_layers(stream, tokens, Impl::Keep::kNothing);
  loss_forward(impl_->pass(stream), impl_->plan.head(),
               Loss<Device>{.mean = loss, .targets = targets});
}

template <class Device>
void Gpt<Device>::forward(Stream& stream, View<Device, const int32_t> tokens,
                          View<Device, const int32_t> targets, float gradient_scale,
                          View<Device, float> loss) {
  impl_->run_layers(stream, tokens, Impl::Keep::kForBackward);
  loss_forward(
      impl_->pass(stream), impl_->plan.head(),
      Loss<Device>{
          .mean = loss, .targets = targets, .gradient = true, .gradient_scale = gradient_scale});
}

template <class Device>
void Gpt<Device>::backward(Stream& stream, bool accumulate, const RangeReady& ready) {
  Impl& m = *impl_;
  LOCKSTEP_CHECK(!m.kept_tokens.empty(), "backward must follow its own forward");
  const auto announce = [&](Range range) {
    if (ready) {
      ready(range);
    }
  };
  const Pass<Device> pass = m.pass(stream);
  const TraceRange whole("backward");
  head_backward(pass, m.parameters.ln_f, m.gradients.ln_f, m.parameters.wte, m.plan.head(),
                m.plan.scratch(), accumulate);
  announce(m.table.final_norm());
  for (int64_t layer = m.config.n_layer - 1; layer >= 0; --layer) {
    const TraceRange trace("layer backward", layer);
    const auto index = static_cast<size_t>(layer);
    block_backward(pass, m.parameters.blocks[index], m.gradients.blocks[index], m.plan.layer(layer),
                   m.plan.scratch(), accumulate);
    announce(m.table.layer(layer));
  }
  m.embeddings_backward(pass, accumulate);
  m.kept_tokens = {};
  announce(m.table.embeddings());
}

template <class Device>
View<Device, const float> Gpt<Device>::logits(Stream& stream, View<Device, const int32_t> tokens) {
  impl_->run_layers(stream, tokens, Impl::Keep::kNothing);
  return impl_->pass(stream)
      .at(impl_->plan.head().logits)
      .subview({0, tokens.size() * impl_->config.padded_vocab()});
}

template <class Device>
const GptConfig& Gpt<Device>::config() const {
  return impl_->config;
}

template <class Device>
const ParamTable& Gpt<Device>::table() const {
  return impl_->table;
}

}  // namespace lockstep
