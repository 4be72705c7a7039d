#pragma once

#include <string>
#include <vector>

#include "core/data/tokenizer.h"
#include "core/model/decoder.h"
#include "core/model/sampling.h"

namespace lockstep {

/// The ids that a sample starts from: the prompt's, or for an empty one a newline where the
/// vocabulary has it, else its first symbol.
std::vector<int32_t> first_tokens(const Tokenizer& tokenizer, const std::string& prompt);

/// The prompt and `length` symbols that the model continues it with.
template <class Device>
std::string sample_text(typename Device::Stream& stream, const GptConfig& config,
                        View<Device, const float> parameters, const Tokenizer& tokenizer,
                        const std::string& prompt, int64_t length, const SamplingOptions& options) {
  Decoder<Device> decoder(config, parameters);
  std::vector<float> logits(static_cast<size_t>(config.vocab_size));
  const auto feed = [&](int32_t token) {
    copy_to_host(stream, logits.data(), decoder.step(stream, token));
    stream.synchronize();
  };
  for (const int32_t token : first_tokens(tokenizer, prompt)) {
    feed(token);
  }
  std::string text = prompt;
  for (int64_t i = 0; i < length; ++i) {
    const int32_t token = sample_token(logits, options, static_cast<uint64_t>(i));
    text += tokenizer.decode(token);
    if (i + 1 < length) {
      feed(token);
    }
  }
  return text;
}

}  // namespace lockstep
