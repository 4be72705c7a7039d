#pragma once

#include <cstdint>

#include "kernels/cpu/dispatch.h"

namespace lockstep {

/// Some rows of the op of the same name, as plain pointers.
struct LayerNormForwardRows {
  int64_t rows;
  int64_t channels;
  float* y;
  float* mean;
  float* rstd;
  const float* x;
  const float* gamma;
  const float* beta;
};
struct LayerNormBackwardRows {
  int64_t rows;
  int64_t channels;
  float* dx;      ///< added to
  float* dgamma;  ///< (channels): this block's sum is added to it
  float* dbeta;   ///< (channels): this block's sum is added to it
  const float* dy;
  const float* x;
  const float* mean;
  const float* rstd;
  const float* gamma;
};

}  // namespace lockstep

LOCKSTEP_PER_ISA(                                           //
    void layernorm_rows(const LayerNormForwardRows& args);  //
    void layernorm_backward_rows(const LayerNormBackwardRows& args);)
