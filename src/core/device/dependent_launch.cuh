#pragma once

// A kernel whose blocks are already there when the kernel before it ends: on compute capability 9.0
// its launch overlaps the other one's tail. The dependency stays an edge of captured graphs.

#include <cuda_runtime.h>

#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"

namespace lockstep {

/// The blocks of the kernel behind this one may start once all of this one's have got here.
__device__ inline void allow_dependent_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Before anything is read or written: until the kernel before this one has ended.
__device__ inline void wait_for_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Launches a kernel that calls wait_for_kernel_before, behind what was launched last. That may be
/// any work; where it does not allow_dependent_launch, the blocks start when it has ended.
template <class... Params, class... Args>
void launch_behind(CudaStream& stream, void (*kernel)(Params...), dim3 grid, dim3 block,
                   Args... args) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream.handle();
  config.attrs = &overlap;
  // One beyond it may run the code for 8.0, which does not wait in the kernel.
  config.numAttrs = stream.facts().compute_capability == 90 ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...),
             "launching a kernel behind another");
}

}  // namespace lockstep
