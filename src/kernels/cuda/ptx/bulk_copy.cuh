#pragma once

// Copies of whole runs of bytes to shared memory, and the barrier on which their arrival is
// awaited: instructions of compute capability 9.0. One that lacks them must not get here.

#include <cstdint>

namespace lockstep::cuda {

/// A barrier in shared memory for one batch of copies. One thread arms it and starts the copies;
/// any number wait.
class CopyBarrier {
 public:
  /// By one thread, before the others may wait: a __syncthreads lies between.
  __device__ void arm(uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address()) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()),
                 "r"(bytes)
                 : "memory");
#endif
  }

  /// Starts a copy that counts towards the armed bytes. Addresses and size are multiples of 16.
  __device__ void copy(void* shared, const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
        "l"(from), "r"(bytes), "r"(address())
        : "memory");
#endif
  }

  /// Until all armed bytes are there.
  __device__ void wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .pred arrived;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 arrived, [%0], 0;\n"
        "@!arrived bra again;\n"
        "}\n" ::"r"(address())
        : "memory");
#endif
  }

 private:
  __device__ uint32_t address() {
    return static_cast<uint32_t>(__cvta_generic_to_shared(&state_));
  }

  uint64_t state_;
};

}  // namespace lockstep::cuda
