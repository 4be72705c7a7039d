#pragma once

// How the kernels read their operands: one view that hides which of the four transpose cases it is.

#include <cstdint>

#include "kernels/cuda/aligned.h"
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

template <Major kMajor>
Operand<kMajor> make_operand(const float* data, int64_t extent, int64_t depth) {
  const int64_t row = kMajor == Major::kK ? depth : extent;
  return {data, static_cast<int>(extent), static_cast<int>(depth), row % 4 == 0 && aligned16(data)};
}

}  // namespace lockstep::cuda
