#pragma once

// What a product's features compute, and the store that has them fused.

#include <cstdint>

#include "core/device/cuda_device.h"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/output.cuh"
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
    // (1 + tanh u) / 2 is the logistic function of 2 u. The approximations err by 2^-22 of it,
    // which is at most 1.
    constexpr float kLog2E = 1.442695041F;
    const float u = kScale * x * fmaf(kCubic * x, x, 1.0F);
    const float s = __fdividef(1.0F, 1.0F + exp2f(-2.0F * kLog2E * u));
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

  /// What the features read for four elements: fetched ahead, so that several are on their way.
  struct Fetched {
    float4 bias = {};
    float4 residual = {};
    float4 factor = {};
    float4 c = {};
  };
  __device__ Fetched fetch(int row, int column) const {
    Fetched fetched;
    if (row < c.m && column < c.n) {
      const int64_t at = static_cast<int64_t>(row) * c.n + column;
      if constexpr ((kFeatures & kBias) != 0) {
        fetched.bias = *reinterpret_cast<const float4*>(with.bias + column);
      }
      if constexpr ((kFeatures & kResidual) != 0) {
        fetched.residual = *reinterpret_cast<const float4*>(with.residual + at);
      }
      if constexpr ((kFeatures & kFactor) != 0) {
        fetched.factor = *reinterpret_cast<const float4*>(with.factor + at);
      }
      if constexpr ((kFeatures & kAccumulate) != 0) {
        fetched.c = *reinterpret_cast<const float4*>(c.data + at);
      }
    }
    return fetched;
  }

  __device__ void store4(int row, int column, float4 value) const {
    store4(row, column, value, fetch(row, column));
  }

  __device__ void store4(int row, int column, float4 value, const Fetched& fetched) const {
    if (row >= c.m || column >= c.n) {
      return;
    }
    const int64_t at = static_cast<int64_t>(row) * c.n + column;
    float values[4] = {value.x, value.y, value.z, value.w};
    if constexpr ((kFeatures & kBias) != 0) {
      add(values, fetched.bias);
    }
    if constexpr ((kFeatures & kResidual) != 0) {
      add(values, fetched.residual);
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
      values[0] *= fetched.factor.x;
      values[1] *= fetched.factor.y;
      values[2] *= fetched.factor.z;
      values[3] *= fetched.factor.w;
    }
    if constexpr ((kFeatures & kAccumulate) != 0) {
      add(values, fetched.c);
    }
    store(c.data + at, values);
  }

 private:
  static __device__ void add(float (&values)[4], float4 four) {
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
