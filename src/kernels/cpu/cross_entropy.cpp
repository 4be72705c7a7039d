#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

void cross_entropy(CpuStream& /*stream*/, const CrossEntropy<CpuDevice>& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    float* logits = args.logits.data() + row * args.padded_vocabulary;
    const int32_t target = args.targets[row];
    const float max = *std::max_element(logits, logits + args.vocabulary);
    float sum = 0;
    for (int64_t v = 0; v < args.vocabulary; ++v) {
      sum += std::exp(logits[v] - max);
    }
    args.losses[row] = std::log(sum) - (logits[target] - max);
    if (!args.gradient) {
      continue;
    }
    for (int64_t v = 0; v < args.vocabulary; ++v) {
      const float one_hot = v == target ? 1.0F : 0.0F;
      logits[v] = (std::exp(logits[v] - max) / sum - one_hot) * args.gradient_scale;
    }
    std::fill(logits + args.vocabulary, logits + args.padded_vocabulary, 0.0F);
  }
}

}  // namespace lockstep
