#include "core/device/cuda_error.h"

#include <cuda_runtime_api.h>

#include "core/base/error.h"

namespace lockstep {

void check_cuda(int code, const char* doing) {
  const auto error = static_cast<cudaError_t>(code);
  if (error == cudaErrorMemoryAllocation) {
    throw OutOfMemoryError("{}: {}", doing, cudaGetErrorString(error));
  }
  if (error != cudaSuccess) {
    throw InternalError("{}: {} ({})", doing, cudaGetErrorString(error), cudaGetErrorName(error));
  }
}

}  // namespace lockstep
