#pragma once

#include <vector>

#include "core/device/cuda_device.h"

namespace lockstep {

/// A kernel that multiplies registers by mma.sync.m16n8k8 in TF32, and nothing else.
struct MmaRateCase {
  const char* what;
  int warps;   ///< on a multiprocessor
  double mma;  ///< instructions a warp
  void (*kernel)(float* out, uint32_t seed);

  /// Enqueues it on every multiprocessor; `out` has 32 elements for each warp.
  void launch(CudaStream& stream, CudaView<float> out, int multiprocessors) const;
};

std::vector<MmaRateCase> mma_rate_cases();

}  // namespace lockstep
