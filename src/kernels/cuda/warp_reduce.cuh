#pragma once

// Sums in an order that only the number of threads determines.

namespace lockstep::cuda {

inline constexpr unsigned kAllLanes = ~0U;

/// The sum over the warp, on every lane.
template <class T>
__device__ T warp_sum(T value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

/// The sum over a block of kWarps warps, on every thread.
template <int kWarps, class T>
__device__ T block_sum(T value) {
  __shared__ T sums[kWarps];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = value;
  }
  __syncthreads();
  T total = sums[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) {
    total += sums[warp];
  }
  __syncthreads();  // the next sum writes where this one reads
  return total;
}

}  // namespace lockstep::cuda
