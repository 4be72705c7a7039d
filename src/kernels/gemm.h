#pragma once

#include <cstdint>
#include <optional>

#include "core/device/cpu_device.h"
#include "kernels/gelu.h"

namespace lockstep {

enum class Transpose : bool { kNo, kYes };

/// One matrix product with what is fused behind it. All matrices are dense and row-major.
///
///   product = op(a) · op(b)                 op(a): (m, k), op(b): (k, n), product: (m, n)
///   value   = product + bias                when `bias` is given: (n), added to every row
///   value   = value + residual              when `residual` is given: (m, n)
///   value   = gelu(value)                   when `gelu` is set
///   value   = value * factor                when `factor` is given: (m, n)
///   c       = accumulate ? c + value : value
///
/// Forward of a layer with GELU keeps gelu', of the argument that gelu had, in `gelu_derivative`:
/// (m, n); backward multiplies by it as `factor`. So both come from one exponential, and backward
/// computes none.
///
/// The product of the whole k is finished before anything is added to it: accumulating two
/// micro-batches on one rank then rounds as summing two ranks does. Nothing may overlap c, except
/// that residual may be c itself. m, n, k may be any non-negative size; k = 0 gives a product of
/// zeros. On a GPU some kernels have their blocks counted by 16 bits, of 32 rows at least: it takes
/// sizes up to 65535 * 32, and may throw UnsupportedError beyond.
template <class Device>
struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Transpose trans_a = Transpose::kNo;  ///< kYes: a is stored (k, m)
  Transpose trans_b = Transpose::kNo;  ///< kYes: b is stored (n, k)
  View<Device, const float> a;
  View<Device, const float> b;
  View<Device, float> c;
  bool accumulate = false;
  View<Device, const float> bias = {};
  View<Device, const float> residual = {};
  std::optional<Gelu> gelu = {};
  View<Device, float> gelu_derivative = {};  ///< with `gelu` only
  View<Device, const float> factor = {};
};

/// Runs the product on the stream. Results do not depend on the number of threads. Throws
/// InternalError when a view is smaller than the shape says.
void gemm(CpuStream& stream, const Gemm<CpuDevice>& problem);

}  // namespace lockstep
