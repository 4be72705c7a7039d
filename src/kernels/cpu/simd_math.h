#pragma once

#include "kernels/cpu/simd.h"

// Exponentials and GELU on one float vector. Every function is accurate to about 2e-7 of the larger
// of its value and 1, and passes NaN through: a diverged run must be seen, not hidden.
namespace lockstep::LOCKSTEP_ISA {

inline constexpr float kLowest = -87.33F;                         // ln of the least normal float
inline constexpr float kMinusTwoScale = -1.59576912160573071F;    // -2 sqrt(2 / pi)
inline constexpr float kInverseSqrtTwoPi = 0.39894228040143268F;  // 1 / sqrt(2 pi)

/// e^x; 0 below -87.3, where floats stop being normal, and +infinity above 88.7.
inline FloatVec exponential(FloatVec x) {
#if defined(__AVX512F__)
  x = minimum(broadcast(89.0F), x);
#endif
  // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, which then stands
  // in the low bits of the sum.
  const FloatVec rounder = broadcast(12582912.0F);
  const FloatVec shifted = multiply_add(x, broadcast(1.44269504088896341F), rounder);
  const FloatVec n = shifted - rounder;
  // ln 2 in two parts: n times the first, of 10 bits, is exact.
  FloatVec r = multiply_add(n, broadcast(-0.693359375F), x);
  r = multiply_add(n, broadcast(2.12194440054690583e-4F), r);
  // 1 + r + r² P(r): P by least squares on Chebyshev nodes, reweighted to the smallest largest
  // error, 3e-9 of the value.
  FloatVec p = broadcast(1.3814539878e-3F);
  p = multiply_add(p, r, broadcast(8.3687451271e-3F));
  p = multiply_add(p, r, broadcast(4.1668390790e-2F));
  p = multiply_add(p, r, broadcast(1.6666520399e-1F));
  p = multiply_add(p, r, broadcast(4.9999993432e-1F));
  p = multiply_add(p, r, broadcast(1.0F));
  p = multiply_add(p, r, broadcast(1.0F));
#if defined(__AVX512F__)
  // Scales by 2^n with overflow to infinity; not less than is true of NaN.
  const __mmask16 normal = _mm512_cmp_ps_mask(x, broadcast(kLowest), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(normal, p, n);
#else
  // 2^n as two factors, since 2^128 is needed and is no float.
  const IntVec exponent = bits_of(shifted) - bits_of(rounder);
  const IntVec half = exponent >> 1;
  const FloatVec scale_a = float_of_bits((half + 127) << 23);
  const FloatVec scale_b = float_of_bits((exponent - half + 127) << 23);
  const FloatVec y = p * scale_a * scale_b;
  return select(x < broadcast(kLowest), FloatVec{},
                select(x > broadcast(88.722F), broadcast(__builtin_inff()), y));
#endif
}

/// The standard normal's density times sqrt(2 pi), e^(-x²/2), and distribution function.
struct Normal {
  FloatVec bell;
  FloatVec distribution;
};
inline Normal standard_normal(FloatVec x) {
  const FloatVec a = absolute(x);
  const FloatVec bell = exponential(a * a * broadcast(-0.5F));
  // The tail beyond a is bell * t * P(t), t = 1 / (1 + 0.35 a): P by least squares of the relative
  // error on Chebyshev nodes over a in [0, 14], largest error 4e-8.
  const FloatVec t = reciprocal(multiply_add(a, broadcast(0.35F), broadcast(1.0F)));
  FloatVec p = broadcast(-0.029552569398371455F);
  p = multiply_add(p, t, broadcast(0.14589250687817615F));
  p = multiply_add(p, t, broadcast(-0.2595476496156187F));
  p = multiply_add(p, t, broadcast(0.16337919527793882F));
  p = multiply_add(p, t, broadcast(-0.02587083518611626F));
  p = multiply_add(p, t, broadcast(0.1066140001461859F));
  p = multiply_add(p, t, broadcast(0.11957015145878121F));
  p = multiply_add(p, t, broadcast(0.13989555693448674F));
  p = multiply_add(p, t, broadcast(0.13961962492078298F));
  const FloatVec tail = bell * t * p;
  return {bell, select(x > FloatVec{}, broadcast(1.0F) - tail, tail)};
}

/// GELU and its derivative at one argument: what they share is most of either.
struct GeluAndDerivative {
  FloatVec value;
  FloatVec derivative;
};

/// The tanh form, by the logistic function s(2u) = 0.5 (1 + tanh u) = 1 / (1 + e), e = e^(-2u),
/// u = sqrt(2 / pi) (x + 0.044715 x³). Unlike 1 + tanh it keeps its digits for negative x.
inline GeluAndDerivative gelu_tanh(FloatVec x) {
  // Beyond 9.6 s and the derivative are 0 or 1 in float, while x² may overflow.
  const FloatVec near = minimum(broadcast(9.6F), maximum(broadcast(-9.6F), x));
  const FloatVec square = near * near;
  const FloatVec e = exponential(near * multiply_add(square, broadcast(kMinusTwoScale * 0.044715F),
                                                     broadcast(kMinusTwoScale)));
  const FloatVec s = reciprocal(broadcast(1.0F) + e);
  // With d = du/dx: s + x s' = s + 2 d x s (1 - s), and 1 - s = e s.
  const FloatVec minus_twice_d =
      multiply_add(square, broadcast(kMinusTwoScale * 3 * 0.044715F), broadcast(kMinusTwoScale));
  return {x * s, s - near * minus_twice_d * (e * s) * s};
}

/// The erf form.
inline GeluAndDerivative gelu_erf(FloatVec x) {
  const Normal normal = standard_normal(x);
  return {x * normal.distribution,
          multiply_add(x * broadcast(kInverseSqrtTwoPi), normal.bell, normal.distribution)};
}

}  // namespace lockstep::LOCKSTEP_ISA
