#pragma once

#include <memory>

#include "comm/shm_region.h"
#include "comm/transport.h"

namespace lockstep {

/// The edge of a lane to the successor through the rank's own region, which the successor has
/// mapped: a published range is read where it lies.
///
/// With `write_through`, for two ranks only and on all their edges, a range that is reduced in an
/// all-reduce is stored to both windows at once, so that the copy at the other rank is only a wait:
/// one pass over the memory instead of two.
std::unique_ptr<SendEdge> make_shm_send_edge(std::shared_ptr<const ShmRegion> own, int lane,
                                             bool write_through);
/// The edge from the predecessor whose region is `peer`.
std::unique_ptr<RecvEdge> make_shm_recv_edge(std::shared_ptr<const ShmRegion> own,
                                             std::shared_ptr<const ShmRegion> peer, int lane,
                                             bool write_through);

}  // namespace lockstep
