#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"

namespace lockstep {

/// Fills with all_reduce_input of a rank and round.
void fill_all_reduce_input(CudaStream& stream, CudaView<float> values, int rank, uint32_t round);

/// Adds to `wrong` the number of values that are not the sum of all_reduce_input over the ranks.
void count_wrong_sums(CudaStream& stream, CudaView<uint64_t> wrong, CudaView<const float> values,
                      int world_size, uint32_t round);

}  // namespace lockstep
