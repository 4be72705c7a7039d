#pragma once

// How a block's warpgroups share out its registers after it has started. PTX ISA, "setmaxnreg".

namespace lockstep::cuda {

/// By all threads of a warpgroup that can do with kCount registers each, a multiple of eight: the
/// others become free for claim_registers.
template <int kCount>
__device__ void release_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}
/// By all threads of a warpgroup: waits until each can have kCount registers.
template <int kCount>
__device__ void claim_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}

}  // namespace lockstep::cuda
