#include "kernels/adamw.h"

#include <cmath>

namespace lockstep {

void adamw(CpuStream& /*stream*/, const AdamW<CpuDevice>& args) {
  const AdamWStep& step = args.step[0];
  for (int64_t i = 0; i < args.parameters.size(); ++i) {
    const float g = step.gradient_scale * args.gradients[i];
    const float m = args.beta1 * args.m[i] + (1.0F - args.beta1) * g;
    const float v = args.beta2 * args.v[i] + (1.0F - args.beta2) * g * g;
    const float scaled =
        m / step.bias_correction1 / (std::sqrt(v / step.bias_correction2) + args.epsilon);
    const float p = args.parameters[i];
    args.m[i] = m;
    args.v[i] = v;
    args.parameters[i] = p - step.learning_rate * (scaled + args.weight_decay * p);
  }
}

}  // namespace lockstep
