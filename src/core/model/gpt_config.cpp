#include "core/model/gpt_config.h"

#include <array>
#include <string_view>

#include "core/base/error.h"

namespace lockstep {
namespace {

struct Bound {
  std::string_view flag;
  int64_t value;
  int64_t largest;
};

}  // namespace

void GptConfig::validate() const {
  // The vocabulary has no flag: it comes with the data.
  if (vocab_size < 1 || vocab_size > (int64_t{1} << 31) - 16) {
    throw UsageError(
        "the vocabulary has {} symbols; it must have at least 1 and at most 2147483632 (token ids "
        "are 32-bit): check the data directory's vocabulary",
        vocab_size);
  }
  const std::array<Bound, 4> bounds = {{{"--block-size", block_size, kMostContext},
                                        {"--n-layer", n_layer, kMostLayers},
                                        {"--n-head", n_head, kMostHeads},
                                        {"--n-embd", n_embd, kMostChannels}}};
  for (const Bound& bound : bounds) {
    if (bound.value < 1 || bound.value > bound.largest) {
      throw UsageError("{} {}: must be at least 1 and at most {}", bound.flag, bound.value,
                       bound.largest);
    }
  }
  if (n_embd % n_head != 0) {
    throw UsageError(
        "--n-embd {} is not divisible by --n-head {}: every head takes the same share of the "
        "channels",
        n_embd, n_head);
  }
  if (gelu != Gelu::kTanh && gelu != Gelu::kErf) {
    throw UsageError("--gelu: {} is no form of GELU; the forms are tanh and erf",
                     static_cast<int>(gelu));
  }
}

}  // namespace lockstep
