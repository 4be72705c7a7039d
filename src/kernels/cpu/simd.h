#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef LOCKSTEP_ISA
#error "simd.h is for sources under lockstep_isa_sources only: see kernels/cpu/dispatch.h"
#endif

// One float vector of the instruction set that the including source is compiled for. Arithmetic and
// comparisons are GCC's vector operators (+ - * / < ...; a < b gives an IntVec of 0 and -1); what
// they lack is here. A tail of a row uses load_first and store_first, so that it goes through the
// same operations, and rounds, as the body.
namespace lockstep::LOCKSTEP_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

using FloatVec __attribute__((vector_size(kLanes * sizeof(float)), may_alias)) = float;
using IntVec __attribute__((vector_size(kLanes * sizeof(int32_t)), may_alias)) = int32_t;

namespace internal {
// The same vectors at any address.
using UnalignedFloatVec
    __attribute__((vector_size(kLanes * sizeof(float)), may_alias, aligned(sizeof(float)))) = float;
}  // namespace internal

inline FloatVec load(const float* from) {
  return *reinterpret_cast<const internal::UnalignedFloatVec*>(from);
}

inline void store(float* to, FloatVec value) {
  *reinterpret_cast<internal::UnalignedFloatVec*>(to) = value;
}

inline FloatVec broadcast(float value) {
  return value - FloatVec{};
}

inline IntVec broadcast_int(int32_t value) {
  return value - IntVec{};
}

/// The first `count` in [0, kLanes] elements, zero in the other lanes; reads no other memory.
inline FloatVec load_first(const float* from, int64_t count) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1U), from);
#elif defined(__AVX2__)
  const IntVec lane = {0, 1, 2, 3, 4, 5, 6, 7};
  const IntVec mask = lane < broadcast_int(static_cast<int32_t>(count));
  return _mm256_maskload_ps(from, reinterpret_cast<__m256i>(mask));
#else
  FloatVec value = {};
  for (int64_t i = 0; i < count; ++i) {
    value[i] = from[i];
  }
  return value;
#endif
}

/// Stores the first `count` in [0, kLanes] lanes; writes no other memory.
inline void store_first(float* to, FloatVec value, int64_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1U), value);
#elif defined(__AVX2__)
  const IntVec lane = {0, 1, 2, 3, 4, 5, 6, 7};
  const IntVec mask = lane < broadcast_int(static_cast<int32_t>(count));
  _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(mask), value);
#else
  for (int64_t i = 0; i < count; ++i) {
    to[i] = value[i];
  }
#endif
}

/// a * b + c, in one rounding where the instruction set has it.
inline FloatVec multiply_add(FloatVec a, FloatVec b, FloatVec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

/// Lane by lane: where ? yes : no, for `where` the result of a comparison.
inline FloatVec select(IntVec where, FloatVec yes, FloatVec no) {
  return where ? yes : no;
}

/// Lane by lane the smaller (larger); b where either is NaN.
inline FloatVec minimum(FloatVec a, FloatVec b) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(0xffff, a, b);  // GCC 12 warns of the unmasked one's own header
#elif defined(__AVX2__)
  return _mm256_min_ps(a, b);
#else
  return select(a < b, a, b);
#endif
}
inline FloatVec maximum(FloatVec a, FloatVec b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xffff, a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#else
  return select(a > b, a, b);
#endif
}

inline FloatVec square_root(FloatVec x) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(0xffff, x);  // GCC 12 warns inside the unmasked form
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#else
  FloatVec root = x;
  for (int i = 0; i < kLanes; ++i) {
    root[i] = __builtin_sqrtf(x[i]);
  }
  return root;
#endif
}

/// 1 / x for normal x whose reciprocal is normal, to one unit in the last place.
inline FloatVec reciprocal(FloatVec x) {
#if defined(__AVX512F__)
  // A division takes as long as ten multiplications; one step of Newton's doubles the estimate's 14
  // bits.
  const FloatVec estimate = _mm512_maskz_rcp14_ps(0xffff, x);
  const FloatVec error = _mm512_fnmadd_ps(estimate, x, broadcast(1.0F));
  return _mm512_fmadd_ps(estimate, error, estimate);
#else
  return broadcast(1.0F) / x;
#endif
}

/// The bits of each lane as the other type.
inline IntVec bits_of(FloatVec x) {
  return reinterpret_cast<IntVec>(x);
}
inline FloatVec float_of_bits(IntVec x) {
  return reinterpret_cast<FloatVec>(x);
}

inline FloatVec absolute(FloatVec x) {
  return float_of_bits(bits_of(x) & broadcast_int(0x7fffffff));
}

/// The sum of all lanes, always in the same order: halves are folded onto each other.
inline float sum_lanes(FloatVec x) {
  float lane[kLanes];
  store(lane, x);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lane[i] += lane[i + half];
    }
  }
  return lane[0];
}

/// The largest lane; `x` must hold no NaN.
inline float largest_lane(FloatVec x) {
  float lane[kLanes];
  store(lane, x);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lane[i] = lane[i] > lane[i + half] ? lane[i] : lane[i + half];
    }
  }
  return lane[0];
}

}  // namespace lockstep::LOCKSTEP_ISA
