#pragma once

#include <string>
#include <vector>

#include "core/data/tokenizer.h"
#include "core/model/generate.h"

namespace lockstep {

/// The prompt and `length` symbols that the model continues it with. An empty prompt stands for the
/// tokenizer's start token.
template <class Device>
std::string sample_text(typename Device::Stream& stream, const GptConfig& config,
                        View<Device, const float> parameters, const Tokenizer& tokenizer,
                        const std::string& prompt, int64_t length, const SamplingOptions& options) {
  const std::vector<int32_t> tokens =
      prompt.empty() ? std::vector<int32_t>{tokenizer.start_token()} : tokenizer.encode(prompt);
  std::string text = prompt;
  generate<Device>(stream, config, parameters, tokens, length, options, 0,
                   [&](int32_t token) { text += tokenizer.decode(token); });
  return text;
}

}  // namespace lockstep
