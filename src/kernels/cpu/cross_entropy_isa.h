#pragma once

#include <cstdint>

#include "kernels/cpu/dispatch.h"

namespace lockstep {

/// One row of the loss.
struct CrossEntropyRow {
  int64_t vocabulary;
  int64_t padded_vocabulary;
  bool gradient;
  float gradient_scale;
  int64_t target;
  float* logits;
};

}  // namespace lockstep

LOCKSTEP_PER_ISA(  //
    /* The row's loss, its logits replaced by their gradient when asked for. */
    float cross_entropy_row(const CrossEntropyRow& args);)
