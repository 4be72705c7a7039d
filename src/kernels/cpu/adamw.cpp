#include "kernels/adamw.h"

#include "kernels/cpu/adamw_isa.h"
#include "kernels/cpu/check_size.h"
#include "kernels/cpu/parallel.h"

namespace lockstep {
namespace {

constexpr int64_t kBlock = 16384;

}  // namespace

void adamw(CpuStream& stream, const AdamW<CpuDevice>& args) {
  static const auto kRange = LOCKSTEP_SELECT_ISA(adamw_range);
  const int64_t size = args.parameters.size();
  check_size("adamw: m", args.m.size(), size);
  check_size("adamw: v", args.v.size(), size);
  check_size("adamw: gradients", args.gradients.size(), size);
  check_size("adamw: step", args.step.size(), 1);
  const AdamWStep& step = args.step[0];
  const AdamWFactors factors = {.beta1 = args.beta1,
                                .one_minus_beta1 = 1.0F - args.beta1,
                                .beta2 = args.beta2,
                                .one_minus_beta2 = 1.0F - args.beta2,
                                .epsilon = args.epsilon,
                                .weight_decay = args.weight_decay,
                                .learning_rate = step.learning_rate,
                                .inverse_bias_correction1 = 1.0F / step.bias_correction1,
                                .inverse_bias_correction2 = 1.0F / step.bias_correction2,
                                .gradient_scale = step.gradient_scale};
  parallel_for_blocks(stream.threads(), size, kBlock, [&](int64_t begin, int64_t count) {
    kRange(factors, count, args.parameters.data() + begin, args.m.data() + begin,
           args.v.data() + begin, args.gradients.data() + begin);
  });
}

}  // namespace lockstep
