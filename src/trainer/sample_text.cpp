#include "trainer/sample_text.h"

namespace lockstep {

std::vector<int32_t> first_tokens(const Tokenizer& tokenizer, const std::string& prompt) {
  if (!prompt.empty()) {
    return tokenizer.encode(prompt);
  }
  for (int32_t token = 0; token < tokenizer.size(); ++token) {
    if (tokenizer.decode(token) == "\n") {
      return {token};
    }
  }
  return {0};
}

}  // namespace lockstep
