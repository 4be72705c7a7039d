#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/device/view.h"
#include "core/model/decoder.h"
#include "core/model/sampling.h"

namespace lockstep {

/// Feeds `prompt` (at least one token) to a fresh model, then draws `length` tokens and hands each
/// to `emit(token)` as it is drawn. The first draw is number `first_index` of options.seed: texts
/// of one seed with ranges of their own are independent.
template <class Device, class Emit>
void generate(typename Device::Stream& stream, const GptConfig& config,
              View<Device, const float> parameters, std::span<const int32_t> prompt, int64_t length,
              const SamplingOptions& options, uint64_t first_index, Emit emit) {
  LOCKSTEP_CHECK(!prompt.empty(), "an empty prompt");
  Decoder<Device> decoder(config, parameters);
  std::vector<float> logits(static_cast<size_t>(config.vocab_size));
  const auto feed = [&](int32_t token) {
    copy_to_host(stream, logits.data(), decoder.step(stream, token));
    stream.synchronize();
  };
  for (const int32_t token : prompt) {
    feed(token);
  }
  for (int64_t i = 0; i < length; ++i) {
    const int32_t token = sample_token(logits, options, first_index + static_cast<uint64_t>(i));
    emit(token);
    if (i + 1 < length) {
      feed(token);
    }
  }
}

}  // namespace lockstep
