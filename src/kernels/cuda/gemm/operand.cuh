#pragma once

// How the kernels read their operands: one view that hides which of the four transpose cases it is.

#include "kernels/layout/swizzle.h"

namespace lockstep::cuda {

using layout::Major;

/// op(A) or op(B) as (extent, depth): extent is m or n, depth is k. The memory's contiguous axis is
/// kMajor's.
template <Major kMajor>
struct Operand {
  const float* data;
  int extent;
  int depth;
  bool vectorized;  ///< rows start at multiples of 16 bytes: four elements can be read at once

  /// Elements between neighbours along the strided axis.
  __device__ int64_t stride() const { return kMajor == Major::kK ? depth : extent; }

  __device__ const float* address(int e, int d) const {
    return kMajor == Major::kK ? data + e * stride() + d : data + d * stride() + e;
  }

  /// The element, or 0 outside of the matrix.
  __device__ float at(int e, int d) const {
    return e < extent && d < depth ? *address(e, d) : 0.0F;
  }

  /// Four elements along the contiguous axis from (e, d) on; 0 outside.
  __device__ float4 at4(int e, int d) const {
    const int along = kMajor == Major::kK ? d : e;
    const int end = kMajor == Major::kK ? depth : extent;
    const bool row = kMajor == Major::kK ? e < extent : d < depth;
    if (vectorized && row && along + 4 <= end) {
      return *reinterpret_cast<const float4*>(address(e, d));
    }
    if constexpr (kMajor == Major::kK) {
      return make_float4(at(e, d), at(e, d + 1), at(e, d + 2), at(e, d + 3));
    } else {
      return make_float4(at(e, d), at(e + 1, d), at(e + 2, d), at(e + 3, d));
    }
  }
};

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

}  // namespace lockstep::cuda
