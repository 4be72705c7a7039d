#pragma once

#include "core/device/cuda_device.h"

namespace lockstep::cuda {

/// The second stage of a sum over rows, whose first stage left one row of partial sums for each
/// block: out[c] (+)= sum over parts of partials[part, c], in an order that `parts` determines.
struct ColumnPartials {
  int64_t parts = 0;
  int64_t columns = 0;
  CudaView<const float> partials;   ///< (parts, columns)
  CudaView<float> out;              ///< the first columns
  CudaView<float> out_behind = {};  ///< the columns behind them, if any
  bool accumulate = false;
};
void sum_column_partials(CudaStream& stream, const ColumnPartials& args);

}  // namespace lockstep::cuda
