#pragma once

#include <cstdint>

namespace lockstep::cuda {

/// Starts the copy of a run of bytes to shared memory; they arrive at `barrier`, as those of
/// copy_box do. By one thread. Addresses and size are multiples of 16. Compute capability 9.0.
__device__ inline void copy_run(uint32_t to, const float* from, int bytes, uint32_t barrier) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
#endif
}

}  // namespace lockstep::cuda
