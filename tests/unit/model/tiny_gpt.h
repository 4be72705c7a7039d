#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/device/buffer.h"
#include "core/model/gpt.h"
#include "unit/model/formula.h"

namespace lockstep {

/// A model with its arenas and one batch, all from the formula, in memory that the test can reach.
template <class Device>
struct TinyGpt {
  TinyGpt(const GptConfig& config, int64_t batch, int64_t time)
      : table(config),
        parameters(table.arena_size()),
        gradients(table.arena_size()),
        tokens(batch * time),
        targets(batch * time),
        loss(1),
        model(config, batch, time, parameters.view(), gradients.view()) {
    set_parameters(formula_parameters(table));
    set_batch(formula_tokens("tokens", config.vocab_size, batch * time),
              formula_tokens("targets", config.vocab_size, batch * time));
  }

  void set_parameters(const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), parameters.view().begin());
  }
  void set_batch(const std::vector<int32_t>& in, const std::vector<int32_t>& out) {
    std::copy(in.begin(), in.end(), tokens.view().begin());
    std::copy(out.begin(), out.end(), targets.view().begin());
  }
  float forward(typename Device::Stream& stream, float gradient_scale = 1.0F) {
    model.forward(stream, tokens.view(), targets.view(), gradient_scale, loss.view());
    return loss.view()[0];
  }
  float evaluate(typename Device::Stream& stream) {
    model.evaluate(stream, tokens.view(), targets.view(), loss.view());
    return loss.view()[0];
  }
  std::vector<float> gradient_values() {
    return {gradients.view().begin(), gradients.view().end()};
  }

  ParamTable table;
  Buffer<Device, float> parameters;
  Buffer<Device, float> gradients;
  Buffer<Device, int32_t> tokens;
  Buffer<Device, int32_t> targets;
  Buffer<Device, float> loss;
  Gpt<Device> model;
};

}  // namespace lockstep
