#include "kernels/cpu/cross_entropy_isa.h"

#include "kernels/cpu/simd_math.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

constexpr int kChains = 4;

// A NaN is passed over here and shows in the sum of exponentials.
float largest(const float* x, int64_t count) {
  FloatVec chains[kChains];
  for (FloatVec& chain : chains) {
    chain = broadcast(x[0]);
  }
  int64_t i = 0;
  for (; i + kChains * kLanes <= count; i += kChains * kLanes) {
    for (int c = 0; c < kChains; ++c) {
      chains[c] = maximum(load(x + i + c * kLanes), chains[c]);
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    chains[0] = maximum(load(x + i), chains[0]);
  }
  float result =
      largest_lane(maximum(maximum(chains[0], chains[1]), maximum(chains[2], chains[3])));
  for (; i < count; ++i) {
    result = x[i] > result ? x[i] : result;
  }
  return result;
}

// The sum of e^(x - max), the terms left in x when Keep is set.
template <bool Keep>
float sum_of_exponentials(float* x, int64_t count, float max) {
  FloatVec sums = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const FloatVec e = exponential(load(x + i) - max);
    sums += e;
    if constexpr (Keep) {
      store(x + i, e);
    }
  }
  if (i < count) {
    const int64_t left = count - i;
    float lanes[kLanes] = {};
    store_first(lanes, exponential(load_first(x + i, left) - max), left);
    sums += load(lanes);
    if constexpr (Keep) {
      store_first(x + i, load(lanes), left);
    }
  }
  return sum_lanes(sums);
}

void multiply(float* x, int64_t count, float factor) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(x + i, load(x + i) * factor);
  }
  for (; i < count; ++i) {
    x[i] *= factor;
  }
}

}  // namespace

float cross_entropy_row(const CrossEntropyRow& args) {
  float* logits = args.logits;
  const float max = largest(logits, args.vocabulary);
  const float target = logits[args.target] - max;
  if (!args.gradient) {
    return __builtin_logf(sum_of_exponentials<false>(logits, args.vocabulary, max)) - target;
  }
  const float sum = sum_of_exponentials<true>(logits, args.vocabulary, max);
  const float target_gradient = (logits[args.target] / sum - 1.0F) * args.gradient_scale;
  multiply(logits, args.vocabulary, args.gradient_scale / sum);
  logits[args.target] = target_gradient;
  for (int64_t v = args.vocabulary; v < args.padded_vocabulary; ++v) {
    logits[v] = 0;
  }
  return __builtin_logf(sum) - target;
}

}  // namespace lockstep::LOCKSTEP_ISA
