#include "kernels/cross_entropy.h"

#include "kernels/check_size.h"
#include "kernels/cpu/cross_entropy_isa.h"
#include "kernels/cpu/parallel.h"

namespace lockstep {
namespace {

constexpr int64_t kRowBlock = 16;

}  // namespace

void cross_entropy(CpuStream& stream, const CrossEntropy<CpuDevice>& args) {
  static const auto kRow = LOCKSTEP_SELECT_ISA(cross_entropy_row);
  const int64_t columns = args.padded_vocabulary;
  check_size("cross_entropy: padded_vocabulary", columns, args.vocabulary);
  check_size("cross_entropy: losses", args.losses.size(), args.rows);
  check_size("cross_entropy: logits", args.logits.size(), args.rows * columns);
  check_size("cross_entropy: targets", args.targets.size(), args.rows);
  parallel_for_blocks(stream.threads(), args.rows, kRowBlock, [&](int64_t begin, int64_t count) {
    for (int64_t row = begin; row < begin + count; ++row) {
      args.losses[row] = kRow({.vocabulary = args.vocabulary,
                               .padded_vocabulary = columns,
                               .gradient = args.gradient,
                               .gradient_scale = args.gradient_scale,
                               .target = args.targets[row],
                               .logits = args.logits.data() + row * columns});
    }
  });
}

}  // namespace lockstep
