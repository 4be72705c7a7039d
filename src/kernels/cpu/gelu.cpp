#include "kernels/gelu.h"

namespace lockstep {

void gelu_forward(CpuStream& /*stream*/, const GeluForward<CpuDevice>& args) {
  for (int64_t i = 0; i < args.x.size(); ++i) {
    args.y[i] = static_cast<float>(gelu_value(args.form, args.x[i]));
  }
}

void gelu_backward(CpuStream& /*stream*/, const GeluBackward<CpuDevice>& args) {
  for (int64_t i = 0; i < args.x.size(); ++i) {
    args.dx[i] = args.dy[i] * static_cast<float>(gelu_derivative(args.form, args.x[i]));
  }
}

}  // namespace lockstep
