#include "kernels/cpu/gelu_isa.h"

#include "kernels/cpu/simd_math.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <class Function>
void map(int64_t count, float* out, const float* in, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(out + i, function(load(in + i)));
  }
  if (i < count) {
    store_first(out + i, function(load_first(in + i, count - i)), count - i);
  }
}

template <class Function>
void map_product(int64_t count, float* out, const float* factor, const float* in,
                 Function function) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(out + i, load(factor + i) * function(load(in + i)));
  }
  if (i < count) {
    const FloatVec left = load_first(factor + i, count - i);
    store_first(out + i, left * function(load_first(in + i, count - i)), count - i);
  }
}

}  // namespace

void gelu_forward_range(Gelu form, int64_t count, float* y, const float* x) {
  if (form == Gelu::kTanh) {
    map(count, y, x, [](FloatVec v) { return gelu_tanh(v); });
  } else {
    map(count, y, x, [](FloatVec v) { return gelu_erf(v); });
  }
}

void gelu_backward_range(Gelu form, int64_t count, float* dx, const float* dy, const float* x) {
  if (form == Gelu::kTanh) {
    map_product(count, dx, dy, x, [](FloatVec v) { return gelu_tanh_derivative(v); });
  } else {
    map_product(count, dx, dy, x, [](FloatVec v) { return gelu_erf_derivative(v); });
  }
}

}  // namespace lockstep::LOCKSTEP_ISA
