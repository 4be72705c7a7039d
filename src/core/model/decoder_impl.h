#pragma once

#include <memory>
#include <vector>

#include "core/device/buffer.h"
#include "core/model/activation_plan.h"
#include "core/model/block_impl.h"
#include "core/model/decoder.h"
#include "core/model/gpt_tensors.h"
#include "core/model/head_impl.h"
#include "core/model/param_table.h"
#include "core/model/pass_impl.h"
#include "kernels/attention.h"
#include "kernels/embedding.h"

// The body of Decoder, for the one translation unit per device that instantiates it.

namespace lockstep {

template <class Device>
struct Decoder<Device>::Impl {
  using Stream = typename Device::Stream;
  using ConstView = View<Device, const float>;

  Impl(const GptConfig& architecture, ConstView arena)
      : config(architecture),
        plan(config, 1, 1, ActivationPlan::Purpose::kInference),
        parameters(ParamTable(config), config, arena),
        workspace(plan.size()),
        k_cache(config.n_layer * config.block_size * config.n_embd),
        v_cache(k_cache.size()),
        token_buffer(1) {}

  Pass<Device> pass(Stream& stream) { return {stream, config, {1, 1}, workspace.view(), nullptr}; }
  View<Device, float> layer_of(Buffer<Device, float>& cache, int64_t layer) {
    const int64_t size = config.block_size * config.n_embd;
    return cache.view().subview({layer * size, (layer + 1) * size});
  }

  /// Runs one token at the next position, up to the residual stream behind the last layer.
  void advance(Stream& stream, int32_t token) {
    const auto position = static_cast<int64_t>(window.size());
    const Pass<Device> forward = pass(stream);
    copy_from_host(stream, token_buffer.view(), &token);
    embedding_forward(stream, EmbeddingForward<Device>{
                                  .batch = 1,
                                  .time = 1,
                                  .channels = config.n_embd,
                                  .x = forward.at(plan.layer(0).input),
                                  .tokens = token_buffer.view(),
                                  .wte = parameters.wte,
                                  .wpe = parameters.wpe.subview(
                                      {position * config.n_embd, (position + 1) * config.n_embd})});
    for (int64_t layer = 0; layer < config.n_layer; ++layer) {
      const auto& block = parameters.blocks[static_cast<size_t>(layer)];
      const LayerActivations& kept = plan.layer(layer);
      const bool last = layer + 1 == config.n_layer;
      attention_input(forward, block, kept);
      attention_decode(stream, AttentionDecode<Device>{.heads = config.n_head,
                                                       .head_dim = config.head_dim(),
                                                       .position = position,
                                                       .out = forward.at(kept.attention_out),
                                                       .k_cache = layer_of(k_cache, layer),
                                                       .v_cache = layer_of(v_cache, layer),
                                                       .qkv = forward.at(kept.qkv)});
      attention_output(forward, block, kept);
      mlp_forward(forward, block, kept, last ? plan.head().input : kept.input);
    }
    window.push_back(token);
  }

  /// Positions are absolute, so the kept half has to be computed anew at its new positions.
  void move_window(Stream& stream) {
    const std::vector<int32_t> kept(window.end() - config.block_size / 2, window.end());
    window.clear();
    for (const int32_t token : kept) {
      advance(stream, token);
    }
  }

  GptConfig config;
  ActivationPlan plan;
  GptTensors<ConstView> parameters;
  Buffer<Device, float> workspace;
  Buffer<Device, float> k_cache;  ///< (n_layer, block_size, C)
  Buffer<Device, float> v_cache;
  Buffer<Device, int32_t> token_buffer;
  std::vector<int32_t> window;  ///< the tokens whose keys and values are cached, by position
};

template <class Device>
Decoder<Device>::Decoder(const GptConfig& config, View<Device, const float> parameters)
    : impl_(std::make_unique<Impl>(config, parameters)) {}

template <class Device>
Decoder<Device>::~Decoder() = default;

template <class Device>
View<Device, const float> Decoder<Device>::step(typename Device::Stream& stream, int32_t token) {
  Impl& m = *impl_;
  if (static_cast<int64_t>(m.window.size()) == m.config.block_size) {
    m.move_window(stream);
  }
  m.advance(stream, token);
  const Pass<Device> pass = m.pass(stream);
  head_forward(pass, m.parameters.ln_f, m.parameters.wte, m.plan.head());
  return pass.at(m.plan.head().logits).subview({0, m.config.vocab_size});
}

}  // namespace lockstep
