#pragma once

#include <cstdint>

#include "comm/cuda/collective_words.h"
#include "core/device/cuda_device.h"

namespace lockstep {

// Around a collective whose own kernels do not write CollectiveWords, in stream order.

/// A collective begins or ends: for `words` to show the bucket and to add up the time. `start_ns`,
/// in GPU memory, holds when it began.
void enqueue_begin(CudaStream& stream, CollectiveWords* words, uint64_t* start_ns, int bucket);
void enqueue_end(CudaStream& stream, CollectiveWords* words, const uint64_t* start_ns);

}  // namespace lockstep
