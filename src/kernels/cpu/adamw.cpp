#include "kernels/adamw.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/check_size.h"
#include "kernels/cpu/adamw_isa.h"
#include "kernels/cpu/parallel.h"

namespace lockstep {
namespace {

static_assert(kSegmentElements % kDecayBlock == 0);

/// Calls `update(begin, count, decays)` for each longest run in [begin, begin + count) of elements
/// that share a decision; `begin` is a multiple of kDecayBlock.
template <class Update>
void for_each_run(CpuView<const uint8_t> decays, int64_t begin, int64_t count,
                  const Update& update) {
  if (decays.empty()) {
    update(begin, count, true);
    return;
  }
  const int64_t end = begin + count;
  while (begin < end) {
    const bool decayed = decays[begin / kDecayBlock] != 0;
    int64_t run_end = begin;
    while (run_end < end && (decays[run_end / kDecayBlock] != 0) == decayed) {
      run_end += kDecayBlock;
    }
    run_end = std::min(run_end, end);
    update(begin, run_end - begin, decayed);
    begin = run_end;
  }
}

}  // namespace

void clip_scale(CpuStream& /*stream*/, const ClipScale<CpuDevice>& args) {
  check_size("clip_scale: step", args.step.size(), 1);
  check_size("clip_scale: squared_norm", args.squared_norm.size(), 1);
  const double norm = std::sqrt(args.squared_norm[0]);
  // The small term keeps a norm of zero finite; the factor is then PyTorch's to the bit.
  const double scale = args.grad_clip > 0 ? std::min(1.0, args.grad_clip / (norm + 1e-6)) : 1.0;
  args.step[0].gradient_scale =
      std::isfinite(norm) ? static_cast<float>(scale) : std::numeric_limits<float>::quiet_NaN();
}

void adamw(CpuStream& stream, const AdamW<CpuDevice>& args) {
  static const auto kRange = LOCKSTEP_SELECT_ISA(adamw_range);
  const int64_t size = args.parameters.size();
  const int64_t owned = args.shard.size(size);
  check_size("adamw: m", args.m.size(), owned);
  check_size("adamw: v", args.v.size(), owned);
  check_size("adamw: gradients", args.gradients.size(), size);
  check_size("adamw: step", args.step.size(), 1);
  if (!args.decays.empty()) {
    check_size("adamw: decays", args.decays.size(), (size + kDecayBlock - 1) / kDecayBlock);
  }
  const AdamWStep& step = args.step[0];
  if (std::isnan(step.gradient_scale)) {
    return;
  }
  const AdamWFactors decayed = {.beta1 = args.beta1,
                                .one_minus_beta1 = 1.0F - args.beta1,
                                .beta2 = args.beta2,
                                .one_minus_beta2 = 1.0F - args.beta2,
                                .epsilon = args.epsilon,
                                .weight_decay = args.weight_decay,
                                .learning_rate = step.learning_rate,
                                .inverse_bias_correction1 = 1.0F / step.bias_correction1,
                                .inverse_bias_correction2 = 1.0F / step.bias_correction2,
                                .gradient_scale = step.gradient_scale};
  AdamWFactors plain = decayed;
  plain.weight_decay = 0;
  parallel_for_blocks(stream.threads(), owned, kSegmentElements, [&](int64_t index, int64_t count) {
    const int64_t first = args.shard.position(index);
    for_each_run(args.decays, first, count, [&](int64_t at, int64_t run, bool decays) {
      const int64_t moment = index + at - first;
      kRange(decays ? decayed : plain, run, args.parameters.data() + at, args.m.data() + moment,
             args.v.data() + moment, args.gradients.data() + at);
    });
  });
}

}  // namespace lockstep
