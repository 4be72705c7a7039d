#pragma once

#include <cstdint>

#include "kernels/layout/split.h"

namespace lockstep::cuda {

/// The nearest TF32 value of a float, both as bits; a NaN stays one. The tensor cores drop the low
/// 13 bits, which alone would shrink every product by half a unit on average.
///
/// On sm_90 one instruction does it, ties to even. Before, only cvt.rna.tf32 does, at a quarter of
/// the rate of integer operations, which make the dropping a rounding.
__device__ inline uint32_t round_to_tf32(uint32_t bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  uint32_t rounded;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
  return rounded;
#else
  return layout::raised_for_truncation(bits);
#endif
}

/// d += a · b for one 16 x 8 x 8 product; layouts in kernels/layout/mma_fragment.h.
__device__ inline void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint2 b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

/// Four 8 x 4 matrices of floats from shared memory: lane l gives the address of row l % 8 of
/// matrix l / 8 (16 bytes); register i of lane (g, t) receives element t of row g of matrix i.
__device__ inline void load_matrices(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address));
}

}  // namespace lockstep::cuda
