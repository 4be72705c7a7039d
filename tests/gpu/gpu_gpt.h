#pragma once

#include <cstdint>
#include <vector>

#include "core/device/cuda_device.h"
#include "core/model/gpt.h"
#include "unit/model/formula.h"

namespace lockstep {

/// A model on the GPU with its arenas and one batch, all from the formula; everything that it says
/// is copied to the host.
class GpuGpt {
 public:
  GpuGpt(CudaStream& stream, const GptConfig& config, int64_t batch, int64_t time)
      : table(config),
        stream_(stream),
        parameters_(table.arena_size()),
        gradients_(table.arena_size()),
        tokens_(batch * time),
        targets_(batch * time),
        loss_(1),
        model_(config, batch, time, parameters_.view(), gradients_.view()) {
    set_parameters(formula_parameters(table));
    set_batch(formula_tokens("tokens", config.vocab_size, batch * time),
              formula_tokens("targets", config.vocab_size, batch * time));
  }

  void set_parameters(const std::vector<float>& values) {
    copy_from_host(stream_, parameters_.view(), values.data());
  }
  void set_batch(const std::vector<int32_t>& tokens, const std::vector<int32_t>& targets) {
    copy_from_host(stream_, tokens_.view(), tokens.data());
    copy_from_host(stream_, targets_.view(), targets.data());
  }

  float forward() {
    model_.forward(stream_, tokens_.view(), targets_.view(), 1.0F, loss_.view());
    return host(loss_.view())[0];
  }
  void backward(bool accumulate = false) { model_.backward(stream_, accumulate, {}); }
  float evaluate() {
    model_.evaluate(stream_, tokens_.view(), targets_.view(), loss_.view());
    return host(loss_.view())[0];
  }
  std::vector<float> logits() { return host(model_.logits(stream_, tokens_.view())); }
  std::vector<float> gradient_values() { return host(gradients_.view()); }
  /// Of one forward and one backward.
  std::vector<float> new_gradients() {
    forward();
    backward();
    return gradient_values();
  }

  CudaView<float> parameters() { return parameters_.view(); }
  CudaView<float> gradients() { return gradients_.view(); }

  ParamTable table;

 private:
  std::vector<float> host(CudaView<const float> view) {
    std::vector<float> values(static_cast<size_t>(view.size()));
    copy_to_host(stream_, values.data(), view);
    stream_.synchronize();
    return values;
  }

  CudaStream& stream_;
  CudaBuffer<float> parameters_;
  CudaBuffer<float> gradients_;
  CudaBuffer<int32_t> tokens_;
  CudaBuffer<int32_t> targets_;
  CudaBuffer<float> loss_;
  Gpt<CudaDevice> model_;
};

}  // namespace lockstep
