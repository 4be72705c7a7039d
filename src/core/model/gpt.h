#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/range.h"
#include "core/device/view.h"
#include "core/model/gpt_config.h"
#include "core/model/param_table.h"

namespace lockstep {

/// A GPT on one device: forward, backward and the activations between them. It knows nothing of
/// ranks, optimizers or files. Parameters and gradients are arenas that the caller owns, laid out
/// by ParamTable; gradients usually lie in memory that other ranks can reach. The body is in
/// gpt_impl.h, instantiated once per device.
template <class Device>
class Gpt {
 public:
  using Stream = typename Device::Stream;
  /// Called when the last op that writes a gradient range has been enqueued. Ranges are disjoint,
  /// descend from the end of the arena and cover it.
  using RangeReady = std::function<void(Range)>;

  /// Allocates activations for up to `batch` sequences of `time` <= block_size tokens. A call may
  /// bring fewer sequences, or one that is shorter: `size` tokens are size / time sequences, or one
  /// of `size` when that is less than `time`. The arenas must outlive the model.
  Gpt(const GptConfig& config, int64_t batch, int64_t time, View<Device, const float> parameters,
      View<Device, float> gradients);
  ~Gpt();
  Gpt(const Gpt&) = delete;
  Gpt& operator=(const Gpt&) = delete;
  Gpt(Gpt&&) = delete;
  Gpt& operator=(Gpt&&) = delete;

  /// Mean loss over the batch into `loss[0]`, without gradients. tokens, targets: (batch, time) in
  /// device memory. Overwrites what a forward left behind, as logits() does.
  void evaluate(Stream& stream, View<Device, const int32_t> tokens,
                View<Device, const int32_t> targets, View<Device, float> loss);

  /// Mean loss over the batch into `loss[0]`; leaves behind what backward needs, which reads the
  /// tokens again: they must stay until then. gradient_scale multiplies the gradient of the mean
  /// loss of this micro-batch: 1 / (micro-batches of the step over all ranks) makes the sum of all
  /// micro-gradients the gradient of the global mean.
  void forward(Stream& stream, View<Device, const int32_t> tokens,
               View<Device, const int32_t> targets, float gradient_scale, View<Device, float> loss);

  /// Gradients of the last forward, once; throws InternalError when no forward precedes it. With
  /// `accumulate` each finished micro-gradient is added to what is there, else it overwrites.
  /// `ready` may be empty (micro-steps that do not end the accumulation).
  void backward(Stream& stream, bool accumulate, const RangeReady& ready);

  /// Logits (batch * time, padded_vocab) of the tokens, for tests and tools. Valid until the next
  /// call.
  View<Device, const float> logits(Stream& stream, View<Device, const int32_t> tokens);

  const GptConfig& config() const;
  const ParamTable& table() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
