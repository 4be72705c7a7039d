#pragma once

#include <cstdint>
#include <memory>

#include "core/device/view.h"
#include "core/model/gpt_config.h"

namespace lockstep {

/// Generates one symbol at a time with cached keys and values: the cost of a position does not grow
/// with a re-run of the prompt. The parameter arena must outlive it.
template <class Device>
class Decoder {
 public:
  Decoder(const GptConfig& config, View<Device, const float> parameters);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  Decoder(Decoder&&) = delete;
  Decoder& operator=(Decoder&&) = delete;

  /// Appends a token; returns the logits (vocab_size) of what follows it, valid until the next
  /// call. Past block_size positions the window is moved: the last half of the context is run again
  /// (positions are absolute in GPT-2).
  View<Device, const float> step(typename Device::Stream& stream, int32_t token);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
