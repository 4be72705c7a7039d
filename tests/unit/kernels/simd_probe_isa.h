#pragma once

#include <cstdint>

#include "kernels/cpu/dispatch.h"

/// Applies one vector function to n floats, or to the first n lanes of one vector.
LOCKSTEP_PER_ISA(void probe_exponential(float* y, const float* x, int64_t n);
                 void probe_gelu_tanh(float* y, const float* x, int64_t n);
                 void probe_gelu_tanh_derivative(float* y, const float* x, int64_t n);
                 void probe_gelu_erf(float* y, const float* x, int64_t n);
                 void probe_gelu_erf_derivative(float* y, const float* x, int64_t n);
                 void probe_square_root(float* y, const float* x, int64_t n);
                 float probe_sum_lanes(const float* x); float probe_largest_lane(const float* x);
                 int probe_lanes();)
