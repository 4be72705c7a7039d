#pragma once

#include <cstdint>

#include "comm/cuda/collective_words.h"
#include "core/base/range.h"
#include "core/device/cuda_device.h"

namespace lockstep {

/// What copy engines cannot do of a sum through host memory, in stream order. Counts lie in GPU
/// memory and are raised by the kernels, so that a graph may be launched again and again; flags lie
/// in memory that both GPUs address.

/// What a rank has posted so far: how often, in the lower half, and a digest of what about.
using Posted = uint64_t;

/// What a post is about, in short.
inline uint32_t subject(Range piece, int bucket) {
  const auto place = static_cast<uint32_t>(piece.begin * 31 + piece.end);
  return place * 31 + static_cast<uint32_t>(bucket);
}

/// What was enqueued so far is done: takes it up into `posted`, as a post about `subject`, and
/// shows it by `flag`.
void enqueue_post(CudaStream& stream, Posted* posted, Posted* flag, uint32_t subject);

/// Waits until the other rank has posted one time more: raises `count`, and waits for `flag` to
/// reach it. `rank` and `bucket` say whom it is for.
void enqueue_await(CudaStream& stream, uint32_t* count, const Posted* flag, const WaitLimit& limit,
                   int rank, int bucket);

/// Ends the run unless `rank`, of which nothing more is to come, has posted what this one has.
void enqueue_compare(CudaStream& stream, const Posted* posted, const Posted* flag,
                     CollectiveWords* words, int rank, int bucket);

/// sum[i] += part[i].
void enqueue_add(CudaStream& stream, CudaView<float> sum, CudaView<const float> part);

}  // namespace lockstep
