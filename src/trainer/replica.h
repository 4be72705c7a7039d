#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/data/data_loader.h"
#include "core/device/buffer.h"
#include "core/model/gpt.h"
#include "core/model/param_table.h"
#include "core/optim/optimizer.h"
#include "trainer/batch_plan.h"

namespace lockstep {

/// This rank's copy of what is trained: parameters, model, optimizer, and the batch being worked
/// on. Gradients lie in the communicator's window.
template <class Device>
class Replica {
 public:
  using Stream = typename Device::Stream;

  /// Parameters have their initial values of `seed`. `gradients` must outlive it. Activations are
  /// made for `sequences` of `config.block_size` tokens, the most that upload takes.
  Replica(Stream& stream, const GptConfig& config, const AdamWOptions& adamw, uint64_t seed,
          int64_t sequences, View<Device, float> gradients)
      : stream_(&stream),
        gradients_(gradients),
        parameters_(gradients.size()),
        tokens_(sequences * config.block_size),
        targets_(sequences * config.block_size),
        model_(config, sequences, config.block_size, parameters_.view(), gradients),
        optimizer_(stream, model_.table(), adamw) {
    const std::vector<float> initial = initial_parameters(model_.table(), seed);
    copy_from_host(stream, parameters_.view(), initial.data());
    stream.synchronize();
  }

  /// Makes `batch` the one that tokens() and targets() name.
  void upload(const HostBatch& batch) {
    batch_tokens_ = static_cast<int64_t>(batch.tokens.size());
    copy_from_host(*stream_, tokens_.view().subview({0, batch_tokens_}), batch.tokens.data());
    copy_from_host(*stream_, targets_.view().subview({0, batch_tokens_}), batch.targets.data());
  }
  View<Device, const int32_t> tokens() { return tokens_.view().subview({0, batch_tokens_}); }
  View<Device, const int32_t> targets() { return targets_.view().subview({0, batch_tokens_}); }

  Stream& stream() { return *stream_; }
  View<Device, float> gradients() { return gradients_; }
  View<Device, float> parameters() { return parameters_.view(); }
  Gpt<Device>& model() { return model_; }
  Optimizer<Device>& optimizer() { return optimizer_; }

  /// Parameters, gradients, both moments, and activations.
  int64_t memory_bytes() const {
    return 4 * parameters_.size() * static_cast<int64_t>(sizeof(float)) + model_.activation_bytes();
  }

 private:
  Stream* stream_;
  View<Device, float> gradients_;
  Buffer<Device, float> parameters_;
  Buffer<Device, int32_t> tokens_;
  Buffer<Device, int32_t> targets_;
  Gpt<Device> model_;
  Optimizer<Device> optimizer_;
  int64_t batch_tokens_ = 0;
};

}  // namespace lockstep
