#pragma once

// The fp32 inner loops that rungs 6 to 8 share.

namespace lockstep::cuda {

/// N floats from shared memory, 16 bytes at a time; `from` must be 16-byte aligned.
template <int kCount>
__device__ void load_shared(float (&to)[kCount], const float* from) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    *reinterpret_cast<float4*>(&to[i]) = *reinterpret_cast<const float4*>(&from[i]);
  }
}

/// sum += a · bᵀ.
template <int kRows, int kColumns>
__device__ void add_outer_product(float (&sum)[kRows][kColumns], const float (&a)[kRows],
                                  const float (&b)[kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
    }
  }
}

}  // namespace lockstep::cuda
