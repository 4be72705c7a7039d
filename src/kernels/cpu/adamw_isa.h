#pragma once

#include <cstdint>

#include "kernels/cpu/dispatch.h"

namespace lockstep {

/// The factors of AdamW's update, rounded once for the whole run of parameters.
struct AdamWFactors {
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float epsilon;
  float weight_decay;
  float learning_rate;
  float inverse_bias_correction1;
  float inverse_bias_correction2;
  float gradient_scale;
};

}  // namespace lockstep

LOCKSTEP_PER_ISA(  //
    void adamw_range(const AdamWFactors& with, int64_t count, float* parameters, float* m, float* v,
                     const float* gradients);)
