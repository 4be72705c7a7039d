#include "kernels/cpu/adamw_isa.h"

#include "kernels/cpu/simd.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

struct Updated {
  FloatVec p, m, v;
};

// Products and sums are rounded one by one, never fused: each element's update is then the same
// sequence of IEEE operations, and has the same bits, on every instruction set.
Updated update(const AdamWFactors& with, FloatVec p, FloatVec m, FloatVec v, FloatVec gradient) {
  const FloatVec g = with.gradient_scale * gradient;
  m = with.beta1 * m + with.one_minus_beta1 * g;
  v = with.beta2 * v + with.one_minus_beta2 * g * g;
  const FloatVec root = square_root(v * with.inverse_bias_correction2) + with.epsilon;
  const FloatVec step = m * with.inverse_bias_correction1 / root + with.weight_decay * p;
  return {p - with.learning_rate * step, m, v};
}

}  // namespace

void adamw_range(const AdamWFactors& factors, int64_t count, float* parameters, float* m, float* v,
                 const float* gradients) {
  const AdamWFactors with =
      factors;  // a copy that no store can change: its fields stay in registers
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Updated to =
        update(with, load(parameters + i), load(m + i), load(v + i), load(gradients + i));
    store(parameters + i, to.p);
    store(m + i, to.m);
    store(v + i, to.v);
  }
  if (i < count) {
    const int64_t left = count - i;
    const Updated to = update(with, load_first(parameters + i, left), load_first(m + i, left),
                              load_first(v + i, left), load_first(gradients + i, left));
    store_first(parameters + i, to.p, left);
    store_first(m + i, to.m, left);
    store_first(v + i, to.v, left);
  }
}

}  // namespace lockstep::LOCKSTEP_ISA
