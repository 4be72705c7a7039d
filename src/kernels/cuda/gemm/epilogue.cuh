#pragma once

// What a product's features compute, and the store that has them fused.

#include <cstdint>

#include "core/device/cuda_device.h"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/operand.cuh"
#include "kernels/gemm.h"

namespace lockstep::cuda {

/// What the features read and write besides c, each (m, n) but for bias (n); null where empty.
struct EpilogueOperands {
  const float* bias = nullptr;
  const float* residual = nullptr;
  const float* factor = nullptr;
  float* gelu_derivative = nullptr;
};

inline EpilogueOperands epilogue_operands_of(const Gemm<CudaDevice>& problem) {
  const auto data_or_null = [](auto view) { return view.empty() ? nullptr : view.data(); };
  return {data_or_null(problem.bias), data_or_null(problem.residual), data_or_null(problem.factor),
          data_or_null(problem.gelu_derivative)};
}

struct GeluAt {
  float value;
  float derivative;
};

/// GELU and its derivative from one exponential; kernels/gelu.h defines both forms.
template <Gelu kForm>
__device__ GeluAt gelu_at(float x) {
  if constexpr (kForm == Gelu::kTanh) {
    constexpr float kScale = 0.7978845608F;  // sqrt(2 / pi)
    constexpr float kCubic = 0.044715F;
    // (1 + tanh u) / 2 is the logistic function of 2 u.
    const float u = kScale * x * fmaf(kCubic * x, x, 1.0F);
    const float s = 1.0F / (1.0F + expf(-2.0F * u));
    const float du = kScale * fmaf(3.0F * kCubic * x, x, 1.0F);
    return {x * s, fmaf(2.0F * x * s * (1.0F - s), du, s)};
  } else {
    constexpr float kInverseSqrt2 = 0.7071067812F;
    constexpr float kInverseSqrt2Pi = 0.3989422804F;
    const float s = 0.5F + 0.5F * erff(x * kInverseSqrt2);
    return {x * s, fmaf(x * kInverseSqrt2Pi, expf(-0.5F * x * x), s)};
  }
}

/// Stores into c what kFeatures make of the product. Every row starts at a multiple of 16 bytes, n
/// is a multiple of four, and k is not sliced.
template <unsigned kFeatures>
struct FusedOutput {
  Output c;
  EpilogueOperands with;
  int slice_depth;

  __device__ void store4(int row, int column, float4 value) const {
    if (row >= c.m || column >= c.n) {
      return;
    }
    const int64_t at = static_cast<int64_t>(row) * c.n + column;
    float values[4] = {value.x, value.y, value.z, value.w};
    if constexpr ((kFeatures & kBias) != 0) {
      add(values, with.bias + column);
    }
    if constexpr ((kFeatures & kResidual) != 0) {
      add(values, with.residual + at);
    }
    if constexpr ((kFeatures & (kGeluTanh | kGeluErf)) != 0) {
      constexpr Gelu form = (kFeatures & kGeluTanh) != 0 ? Gelu::kTanh : Gelu::kErf;
      float derivatives[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const GeluAt gelu = gelu_at<form>(values[i]);
        values[i] = gelu.value;
        derivatives[i] = gelu.derivative;
      }
      if (with.gelu_derivative != nullptr) {
        store(with.gelu_derivative + at, derivatives);
      }
    }
    if constexpr ((kFeatures & kFactor) != 0) {
      const float4 factor = *reinterpret_cast<const float4*>(with.factor + at);
      values[0] *= factor.x;
      values[1] *= factor.y;
      values[2] *= factor.z;
      values[3] *= factor.w;
    }
    if constexpr ((kFeatures & kAccumulate) != 0) {
      add(values, c.data + at);
    }
    store(c.data + at, values);
  }

 private:
  static __device__ void add(float (&values)[4], const float* from) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    values[0] += four.x;
    values[1] += four.y;
    values[2] += four.z;
    values[3] += four.w;
  }
  static __device__ void store(float* to, const float (&values)[4]) {
    *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
  }
};

}  // namespace lockstep::cuda
