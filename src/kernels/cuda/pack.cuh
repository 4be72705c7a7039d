#pragma once

// Memory in packs: the floats that one thread moves with one access.

#include <type_traits>

#include "kernels/cuda/aligned.h"

namespace lockstep::cuda {

/// Four floats where rows and pointers are multiples of 16 bytes, one where anything is not.
template <int kWidth_>
struct alignas(kWidth_ * sizeof(float)) Pack {
  static constexpr int kWidth = kWidth_;
  float values[kWidth];

  __device__ float& operator[](int i) { return values[i]; }
  __device__ float operator[](int i) const { return values[i]; }
};

template <int kWidth>
__device__ Pack<kWidth> load_pack(const float* from) {
  return *reinterpret_cast<const Pack<kWidth>*>(from);
}
template <int kWidth>
__device__ void store_pack(float* to, const Pack<kWidth>& pack) {
  *reinterpret_cast<Pack<kWidth>*>(to) = pack;
}

/// Stores what will not be read soon: it makes room in the caches before anything else does.
template <int kWidth>
__device__ void stream_pack(float* to, const Pack<kWidth>& pack) {
  if constexpr (kWidth == 4) {
    __stcs(reinterpret_cast<float4*>(to), make_float4(pack[0], pack[1], pack[2], pack[3]));
  } else {
    for (int i = 0; i < kWidth; ++i) {
      __stcs(to + i, pack[i]);
    }
  }
}

/// body of each element's index in the pack.
template <int kWidth, class Body>
__device__ void for_each_lane(Body body) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    body(i);
  }
}

/// Calls body with the widest pack, as a type, that these permit.
template <class Body>
void dispatch_width(bool vectorized, Body body) {
  if (vectorized) {
    body(std::integral_constant<int, 4>{});
  } else {
    body(std::integral_constant<int, 1>{});
  }
}

}  // namespace lockstep::cuda
