#include "unit/kernels/simd_probe_isa.h"

#include "kernels/cpu/simd_math.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <class Function>
void apply(float* y, const float* x, int64_t n, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(y + i, function(load(x + i)));
  }
  store_first(y + i, function(load_first(x + i, n - i)), n - i);
}

}  // namespace

void probe_exponential(float* y, const float* x, int64_t n) {
  apply(y, x, n, exponential);
}
void probe_gelu_tanh(float* y, const float* x, int64_t n) {
  apply(y, x, n, [](FloatVec v) { return gelu_tanh(v).value; });
}
void probe_gelu_tanh_derivative(float* y, const float* x, int64_t n) {
  apply(y, x, n, [](FloatVec v) { return gelu_tanh(v).derivative; });
}
void probe_gelu_erf(float* y, const float* x, int64_t n) {
  apply(y, x, n, [](FloatVec v) { return gelu_erf(v).value; });
}
void probe_gelu_erf_derivative(float* y, const float* x, int64_t n) {
  apply(y, x, n, [](FloatVec v) { return gelu_erf(v).derivative; });
}
void probe_square_root(float* y, const float* x, int64_t n) {
  apply(y, x, n, square_root);
}
float probe_sum_lanes(const float* x) {
  return sum_lanes(load(x));
}
float probe_largest_lane(const float* x) {
  return largest_lane(load(x));
}
int probe_lanes() {
  return kLanes;
}

}  // namespace lockstep::LOCKSTEP_ISA
