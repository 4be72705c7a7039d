#pragma once

#include <cstdint>

#include "kernels/cpu/dispatch.h"
#include "kernels/gelu.h"

LOCKSTEP_PER_ISA(                                                                 //
    void gelu_forward_range(Gelu form, int64_t count, float* y, const float* x);  //
    void gelu_backward_range(Gelu form, int64_t count, float* dx, const float* dy, const float* x);)
