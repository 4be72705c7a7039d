#pragma once

#include <optional>

#include "comm/communicator.h"
#include "core/base/error.h"
#include "trainer/group.h"
#include "trainer/replica.h"
#include "trainer/window_layout.h"

namespace lockstep {

/// What this rank's replica has in the window, if `layout` has shards. Throws UsageError where the
/// communicator has none.
template <class Device>
std::optional<ReplicaShard<Device>> replica_shard(const Group& group,
                                                  Communicator<Device>& communicator,
                                                  const WindowLayout& layout) {
  if (!layout.sharded()) {
    return std::nullopt;
  }
  if (!communicator.has_shards()) {
    throw UsageError(
        "--shard-optimizer is for sums over peer access or by the host ring, and this run's go by "
        "{}: add --transport shm (one host) or --transport socket, or leave it out",
        communicator.transport_name());
  }
  const View<Device, float> window = communicator.window();
  const View<Device, float> sums = window.subview(layout.segment_sums);
  // A segment's first element is aligned for doubles, which are all that is ever stored there.
  constexpr auto kFloats = static_cast<int64_t>(sizeof(double) / sizeof(float));
  return ReplicaShard<Device>{
      .parameters = window.subview(layout.parameters),
      .update = {.shard = layout.shard(group.rank()),
                 .segment_sums = {reinterpret_cast<double*>(sums.data()), sums.size() / kFloats}}};
}

}  // namespace lockstep
