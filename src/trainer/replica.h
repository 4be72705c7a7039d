#pragma once

#include <cstdint>
#include <vector>

#include "core/device/buffer.h"
#include "core/model/gpt.h"
#include "core/model/param_table.h"
#include "core/optim/optimizer.h"

namespace lockstep {

/// This rank's copy of what is trained: parameters, model, optimizer. Gradients lie in the
/// communicator's window.
template <class Device>
class Replica {
 public:
  using Stream = typename Device::Stream;

  /// Parameters have their initial values of `seed`. `gradients` must outlive it. Activations are
  /// made for `sequences` of `config.block_size` tokens, the most that a call brings.
  Replica(Stream& stream, const GptConfig& config, const AdamWOptions& adamw, uint64_t seed,
          int64_t sequences, View<Device, float> gradients)
      : stream_(&stream),
        gradients_(gradients),
        parameters_(gradients.size()),
        model_(config, sequences, config.block_size, parameters_.view(), gradients),
        optimizer_(stream, model_.table(), adamw) {
    const std::vector<float> initial = initial_parameters(model_.table(), seed);
    copy_from_host(stream, parameters_.view(), initial.data());
    stream.synchronize();
  }

  Stream& stream() { return *stream_; }
  View<Device, float> gradients() { return gradients_; }
  View<Device, float> parameters() { return parameters_.view(); }
  Gpt<Device>& model() { return model_; }
  Optimizer<Device>& optimizer() { return optimizer_; }

 private:
  Stream* stream_;
  View<Device, float> gradients_;
  Buffer<Device, float> parameters_;
  Gpt<Device> model_;
  Optimizer<Device> optimizer_;
};

}  // namespace lockstep
