#pragma once

#include "kernels/cuda/gemm/kernel.h"

namespace lockstep {

/// What a kernel does on one multiprocessor, in microseconds. Fitted to the times of every plan of
/// the shapes of `gemm_bench --model char` and `--model 124m` on the H200 of docs/performance.md;
/// what matters is which plan comes out as the fastest, and that holds on other GPUs as far as
/// their multiprocessors are alike.
struct KernelSpeed {
  bool crowds = false;  ///< behind a first wave: as many blocks as fit come to one again
  double rate;          ///< multiply-adds, in units of 1e6, with endless blocks
  double half;          ///< blocks that reach half of that
  double filling;       ///< k whose time passes before the first and after the last stage
  double start_us;      ///< of a launch
  double k_major = 0;   ///< more work for each K-major operand, as a fraction
  double sum_rate;      ///< bytes, in units of 1e6, of the kernel that adds slices
  double sum_start_us;  ///< of its launch
};
KernelSpeed speed_of(GemmKernel kernel);

}  // namespace lockstep
