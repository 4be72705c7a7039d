#pragma once

// Where the kernels leave their products, as they are.

#include <cstdint>

#include "kernels/cuda/aligned.h"

namespace lockstep::cuda {

/// Where a product goes: row-major (m, n). A product whose k is divided over blockIdx.z leaves the
/// sums of its slices one matrix after the other.
struct Output {
  float* data;
  int m;
  int n;
  bool vectorized;  ///< rows start at multiples of 16 bytes
  int slice_depth;  ///< of k, for each blockIdx.z

  __device__ float* at(int row, int column) const {
    return data + (static_cast<int64_t>(blockIdx.z) * m + row) * n + column;
  }

  __device__ void store(int row, int column, float value) const {
    if (row < m && column < n) {
      *at(row, column) = value;
    }
  }

  /// Nothing is read for a plain product.
  struct Fetched {};
  __device__ Fetched fetch(int /*row*/, int /*column*/) const { return {}; }
  __device__ void store4(int row, int column, float4 value, const Fetched& /*fetched*/) const {
    store4(row, column, value);
  }

  __device__ void store2(int row, int column, float2 value) const {
    if (vectorized && row < m && column + 2 <= n) {
      *reinterpret_cast<float2*>(at(row, column)) = value;
    } else {
      store(row, column, value.x);
      store(row, column + 1, value.y);
    }
  }

  __device__ void store4(int row, int column, float4 value) const {
    if (vectorized && row < m && column + 4 <= n) {
      *reinterpret_cast<float4*>(at(row, column)) = value;
    } else {
      store(row, column, value.x);
      store(row, column + 1, value.y);
      store(row, column + 2, value.z);
      store(row, column + 3, value.w);
    }
  }
};

inline Output make_output(float* data, int64_t m, int64_t n, int64_t slice_depth) {
  return {data, static_cast<int>(m), static_cast<int>(n), n % 4 == 0 && aligned16(data),
          static_cast<int>(slice_depth)};
}

}  // namespace lockstep::cuda
