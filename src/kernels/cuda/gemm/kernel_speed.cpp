#include "kernels/cuda/gemm/kernel_speed.h"

#include "core/base/error.h"

namespace lockstep {

KernelSpeed speed_of(GemmKernel kernel) {
  switch (kernel) {
    case GemmKernel::kSimt128x128:
      return {.crowds = true,
              .rate = 0.245,
              .half = 0.386,
              .filling = 5.61,
              .start_us = 2.24,
              .k_major = 0.081,
              .sum_rate = 2.77,
              .sum_start_us = 2.58};
    case GemmKernel::kSimt128x64:
      return {.rate = 0.170,
              .half = 0.142,
              .filling = 5.82,
              .start_us = 2.60,
              .k_major = 0.039,
              .sum_rate = 7.54,
              .sum_start_us = 1.42};
    case GemmKernel::kSimt64x64:
      return {.rate = 0.183,
              .half = 1.20,
              .filling = 11.1,
              .start_us = 2.97,
              .k_major = 0.036,
              .sum_rate = 7.31,
              .sum_start_us = 0.707};
    case GemmKernel::kMma128x128:
      return {.rate = 0.865,
              .half = 0.266,
              .filling = 205,
              .start_us = 1.24,
              .k_major = 0.015,
              .sum_rate = 3.61,
              .sum_start_us = 0.246};
    case GemmKernel::kMma128x64:
      return {.rate = 0.681,
              .half = 0.232,
              .filling = 86.4,
              .start_us = 1.98,
              .k_major = 0.009,
              .sum_rate = 7.68,
              .sum_start_us = 2.08};
    case GemmKernel::kMma64x64:
      return {.rate = 0.584,
              .half = 0.136,
              .filling = 64.9,
              .start_us = 2.30,
              .k_major = 0.023,
              .sum_rate = 29.9,
              .sum_start_us = 2.06};
    case GemmKernel::kWgmma128x256:
      return {.rate = 2.365,
              .half = 0.452,
              .filling = 243,
              .start_us = 0.318,
              .sum_rate = 3.10,
              .sum_start_us = 0.436};
    case GemmKernel::kWgmma128x192:
      return {.rate = 3.073,
              .half = 0.895,
              .filling = 292,
              .start_us = 0.151,
              .sum_rate = 3.35,
              .sum_start_us = 0.561};
    case GemmKernel::kWgmma128x128:
      return {.rate = 3.015,
              .half = 0.922,
              .filling = 327,
              .start_us = 0.283,
              .sum_rate = 3.35,
              .sum_start_us = 0.278};
    case GemmKernel::kWgmma128x96:
      return {.rate = 1.489,
              .half = 0.391,
              .filling = 165,
              .start_us = 1.19,
              .sum_rate = 3.18,
              .sum_start_us = 0.686};
    case GemmKernel::kWgmma128x64:
      return {.rate = 1.229,
              .half = 0.540,
              .filling = 129,
              .start_us = 0.701,
              .sum_rate = 7.31,
              .sum_start_us = 4.33};
    case GemmKernel::kPingPong64x256:
      return {.rate = 1.303,
              .half = 0.087,
              .filling = 55.4,
              .start_us = 0.373,
              .sum_rate = 3.35,
              .sum_start_us = 0.5};
    case GemmKernel::kPingPong64x192:
      return {.rate = 1.400,
              .half = 0.002,
              .filling = 109,
              .start_us = 1.54,
              .sum_rate = 3.35,
              .sum_start_us = 0.5};
    case GemmKernel::kWgmmaMn128x256:
      return {.rate = 2.300,
              .half = 0.452,
              .filling = 243,
              .start_us = 0.318,
              .sum_rate = 3.10,
              .sum_start_us = 0.436};
    case GemmKernel::kWgmmaMn128x192:
      return {.rate = 2.900,
              .half = 0.895,
              .filling = 292,
              .start_us = 0.151,
              .sum_rate = 3.35,
              .sum_start_us = 0.561};
    case GemmKernel::kWgmmaMn128x128:
      return {.rate = 2.500,
              .half = 0.922,
              .filling = 279,
              .start_us = 0.283,
              .sum_rate = 3.35,
              .sum_start_us = 0.278};
    case GemmKernel::kSplit128x128:
      return {.rate = 0.480,
              .half = 0,
              .filling = 108,
              .start_us = 0.9,
              .sum_rate = 3.35,
              .sum_start_us = 0.5};
    case GemmKernel::kSplit128x96:
      return {.rate = 0.485,
              .half = 0,
              .filling = 127,
              .start_us = 1.15,
              .sum_rate = 3.35,
              .sum_start_us = 0.5};
  }
  throw InternalError("a kernel of {}", static_cast<int>(kernel));
}

}  // namespace lockstep
