#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"

namespace lockstep::cuda {

/// Where each symbol stands in a batch: a stable counting sort of the positions by their token.
struct TokenIndex {
  int64_t vocabulary = 0;
  CudaView<const int32_t> tokens;  ///< each in [0, vocabulary)
  /// (vocabulary + 1): symbol v's positions are positions[begins[v]] … positions[begins[v + 1] - 1]
  CudaView<int32_t> begins;
  CudaView<int32_t> positions;  ///< (tokens), ascending for each symbol
};
void index_tokens(CudaStream& stream, const TokenIndex& index);

}  // namespace lockstep::cuda
