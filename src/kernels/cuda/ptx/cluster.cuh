#pragma once

// Clusters: blocks that run at the same time and see each other's shared memory, from compute
// capability 9.0 on. One that lacks them must not get here.

#include <cstdint>

namespace lockstep::cuda {

__device__ inline int cluster_rank() {
  uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return static_cast<int>(rank);
}
__device__ inline int cluster_size() {
  uint32_t size = 1;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
#endif
  return static_cast<int>(size);
}

/// The two halves of a barrier of all threads of the cluster: what was written before arriving is
/// seen after waiting.
__device__ inline void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ inline void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/// Reads the float that stands at `own` in this block from the shared memory of block `rank`.
__device__ inline float read_peer(const float* own, int rank) {
  float value = 0;
#if __CUDA_ARCH__ >= 900
  uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(own));
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
#endif
  return value;
}

}  // namespace lockstep::cuda
