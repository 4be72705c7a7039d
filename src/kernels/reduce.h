#pragma once

#include <cstdint>

#include "core/device/cpu_device.h"

namespace lockstep {

/// out[c] (+)= sum over rows of in[row, c]: the gradient of a bias. The sum is finished before it
/// is added.
template <class Device>
struct ColumnSum {
  int64_t rows = 0;
  int64_t columns = 0;
  View<Device, float> out;       ///< (columns)
  View<Device, const float> in;  ///< (rows, columns)
  bool accumulate = false;
};
void column_sum(CpuStream& stream, const ColumnSum<CpuDevice>& args);

/// out[0] = sum of x², in double, over x's segments: as segment_norms and norm_of_segments.
template <class Device>
struct SquaredNorm {
  View<Device, double> out;  ///< (1)
  View<Device, const float> x;
};
void squared_norm(CpuStream& stream, const SquaredNorm<CpuDevice>& args);

/// out[0] = scale * sum of x, in double, over fixed blocks.
template <class Device>
struct Sum {
  View<Device, float> out;  ///< (1)
  View<Device, const float> x;
  double scale = 1.0;
};
void sum(CpuStream& stream, const Sum<CpuDevice>& args);

/// to = to + from, elementwise: the reduction that the collectives run. Same bits for every
/// alignment and length.
void add_into(CpuStream& stream, CpuView<float> to, CpuView<const float> from);

}  // namespace lockstep
