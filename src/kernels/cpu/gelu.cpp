#include "kernels/gelu.h"

#include "kernels/cpu/check_size.h"
#include "kernels/cpu/gelu_isa.h"
#include "kernels/cpu/parallel.h"

namespace lockstep {
namespace {

constexpr int64_t kBlock = 8192;

}  // namespace

void gelu_forward(CpuStream& stream, const GeluForward<CpuDevice>& args) {
  static const auto kRange = LOCKSTEP_SELECT_ISA(gelu_forward_range);
  check_size("gelu: y", args.y.size(), args.x.size());
  parallel_for_blocks(stream.threads(), args.x.size(), kBlock, [&](int64_t begin, int64_t count) {
    kRange(args.form, count, args.y.data() + begin, args.x.data() + begin);
  });
}

void gelu_backward(CpuStream& stream, const GeluBackward<CpuDevice>& args) {
  static const auto kRange = LOCKSTEP_SELECT_ISA(gelu_backward_range);
  check_size("gelu: dy", args.dy.size(), args.x.size());
  check_size("gelu: dx", args.dx.size(), args.x.size());
  parallel_for_blocks(stream.threads(), args.x.size(), kBlock, [&](int64_t begin, int64_t count) {
    kRange(args.form, count, args.dx.data() + begin, args.dy.data() + begin, args.x.data() + begin);
  });
}

}  // namespace lockstep
