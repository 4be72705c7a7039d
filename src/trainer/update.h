#pragma once

#include <algorithm>
#include <cstdint>

#include "comm/communicator.h"
#include "trainer/replica.h"
#include "trainer/window_layout.h"

namespace lockstep {

/// Elements of a part of the arena that is updated while the one before is gathered. The first
/// one's update and the last one's way are beside nothing, so they are to be small; but each part
/// starts two kernels. An estimate: each GPU of two updates its half of 32 MiB in 30 us and sends
/// it in 50. A multiple of a segment for each of the ranks.
inline int64_t update_part_elements(int64_t ranks) {
  constexpr int64_t kSegments = 512;
  return std::max<int64_t>(1, kSegments / ranks) * ranks * kSegmentElements;
}

/// Enqueues the optimizer's part of a step: the update of the whole replica, or where `layout` has
/// shards of this rank's, in parts of `part_elements`, and what the ranks must tell each other for
/// it. With shards and without parameters get the same bits. Collective with shards; unless they
/// are not `gathered`, which leaves ranks with parameters of their own (benches only).
template <class Device>
void update_replica(typename Device::Stream& stream, Replica<Device>& replica,
                    Communicator<Device>& communicator, const WindowLayout& layout,
                    View<Device, AdamWStep> scalars, int64_t part_elements, bool gathered) {
  Optimizer<Device>& optimizer = replica.optimizer();
  const View<Device, const float> gradients = replica.gradients();
  if (!layout.sharded()) {
    optimizer.step(stream, scalars, replica.parameters(), gradients);
    return;
  }
  int next = 0;
  const auto gather = [&](Range range) {
    if (gathered) {
      communicator.all_gather(stream, range, next++, SumLoad::kAlone);
    }
  };
  const auto finish = [&] {
    if (gathered) {
      communicator.finish(stream);
    }
  };
  optimizer.measure(stream, gradients);
  gather(layout.segment_sums);
  finish();
  optimizer.clip(stream, scalars);
  const int64_t size = layout.parameters.size();
  for (Range part{0, 0}; part.end < size; part.begin = part.end) {
    part.end = std::min(size, part.begin + part_elements);
    optimizer.update(stream, scalars, replica.parameters(), gradients, part);
    gather({layout.parameters.begin + part.begin, layout.parameters.begin + part.end});
  }
  finish();
}

}  // namespace lockstep
