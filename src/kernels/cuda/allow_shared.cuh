#pragma once

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"

namespace lockstep::cuda {

/// Lets launches of a kernel ask for `bytes` of shared memory: more than 48 KiB need permission.
template <class Kernel>
void allow_shared(Kernel* kernel, int bytes) {
  if (bytes > 0) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "raising a kernel's shared memory");
  }
}

}  // namespace lockstep::cuda
