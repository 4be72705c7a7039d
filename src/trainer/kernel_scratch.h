#pragma once

#include <cstdint>

#include "core/device/cuda_facts.h"
#include "trainer/step_time.h"

namespace lockstep {

/// Bytes of scratch memory that the streams of a training step take for its kernels on a GPU:
/// transposed copies, partial sums, attention's. Ops that take less than 1 MiB are left out. Pure.
int64_t kernel_scratch(const StepWork& work, const CudaFacts& facts);

}  // namespace lockstep
