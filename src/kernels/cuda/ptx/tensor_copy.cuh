#pragma once

// Hopper's bulk tensor copies (TMA) and the barriers in shared memory that count their bytes. PTX
// ISA, "cp.async.bulk.tensor" and "mbarrier".

#include <cuda.h>

#include <cstdint>

namespace lockstep::cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LOCKSTEP_SM90_ASM(...) asm volatile(__VA_ARGS__)
#else
#define LOCKSTEP_SM90_ASM(...)
#endif

// A barrier is named by the address of its 8 bytes in shared memory.

__device__ inline void init_barrier(uint32_t barrier, int arrivals) {
  LOCKSTEP_SM90_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                    : "memory");
}
/// Makes initialised barriers known to the copy engine, before the block's threads meet.
__device__ inline void publish_barriers() {
  LOCKSTEP_SM90_ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(uint32_t barrier) {
  LOCKSTEP_SM90_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives, and announces bytes that copies will bring.
__device__ inline void arrive_expecting(uint32_t barrier, int bytes) {
  LOCKSTEP_SM90_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                    "r"(bytes)
                    : "memory");
}
/// Waits for the end of the phase with this parity: 0 first, then 1, 0, ...
__device__ inline void wait_barrier(uint32_t barrier, int parity) {
  LOCKSTEP_SM90_ASM(
      "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
      "@!done bra again; }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// True for one lane of a warp, by all lanes of it. The compiler knows it to be one: instructions
/// that a single thread gives, as those below, then need no loop over the lanes.
__device__ inline bool elected() {
  uint32_t chosen = 0;
  LOCKSTEP_SM90_ASM(
      "{ .reg .pred chosen; elect.sync _|chosen, 0xFFFFFFFF; selp.u32 %0, 1, 0, chosen; }"
      : "=r"(chosen));
  return chosen != 0;
}

/// Starts the copy of the box of a matrix at (row, column) to `to`; its bytes arrive at `barrier`.
/// By one thread. Outside of the matrix there are zeros.
__device__ inline void copy_box(uint32_t to, const CUtensorMap* map, int column, int row,
                                uint32_t barrier) {
  LOCKSTEP_SM90_ASM(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(to),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
__device__ inline void prefetch_map(const CUtensorMap* map) {
  LOCKSTEP_SM90_ASM("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

#undef LOCKSTEP_SM90_ASM

}  // namespace lockstep::cuda
