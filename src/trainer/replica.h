#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/buffer.h"
#include "core/model/gpt.h"
#include "core/model/param_table.h"
#include "core/optim/optimizer.h"

namespace lockstep {

/// What of a replica the ranks exchange where each updates a shard: elements of the window.
template <class Device>
struct ReplicaShard {
  View<Device, float> parameters;  ///< the whole arena, zeroed
  UpdateShard<Device> update;
};

/// This rank's copy of what is trained: parameters, model, optimizer. Gradients lie in the
/// communicator's window.
template <class Device>
class Replica {
 public:
  using Stream = typename Device::Stream;

  /// Parameters have their initial values of `seed`. `gradients` must outlive it. Activations are
  /// made for `sequences` of `config.block_size` tokens, the most that a call brings. With `shard`,
  /// whose memory must outlive it too, the optimizer updates that alone.
  Replica(Stream& stream, const GptConfig& config, const AdamWOptions& adamw, uint64_t seed,
          int64_t sequences, View<Device, float> gradients,
          const std::optional<ReplicaShard<Device>>& shard = std::nullopt)
      : stream_(&stream),
        gradients_(gradients),
        own_parameters_(shard ? 0 : gradients.size()),
        parameters_(shard ? shard->parameters : own_parameters_.view()),
        model_(config, sequences, config.block_size, parameters_, gradients),
        optimizer_(stream, model_.table(), adamw,
                   shard ? std::optional(shard->update) : std::nullopt) {
    const std::vector<float> initial = initial_parameters(model_.table(), seed);
    copy_from_host(stream, parameters_, initial.data());
    stream.synchronize();
  }

  Stream& stream() { return *stream_; }
  View<Device, float> gradients() { return gradients_; }
  View<Device, float> parameters() { return parameters_; }
  Gpt<Device>& model() { return model_; }
  Optimizer<Device>& optimizer() { return optimizer_; }

 private:
  Stream* stream_;
  View<Device, float> gradients_;
  Buffer<Device, float> own_parameters_;  ///< where they do not lie in the window
  View<Device, float> parameters_;
  Gpt<Device> model_;
  Optimizer<Device> optimizer_;
};

}  // namespace lockstep
