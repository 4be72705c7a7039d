#pragma once

#include <cstdint>

#include "core/base/arena_shard.h"
#include "core/device/cpu_device.h"

namespace lockstep {

/// Where the sums of squares of an arena's segments lie when each of `ranks` ranks computes those
/// of its shard: in rows that fill a segment of floats each, the first row rank 0's. So a rank's
/// sums lie in segments that it owns, as long as the first does. Those of one rank lie in order.
struct SegmentSums {
  int64_t arena_elements = 0;
  int64_t ranks = 1;

  /// Doubles of a row.
  static constexpr int64_t kRow =
      kSegmentElements * static_cast<int64_t>(sizeof(float)) / static_cast<int64_t>(sizeof(double));

  constexpr int64_t segments() const {
    return (arena_elements + kSegmentElements - 1) / kSegmentElements;
  }
  /// In doubles; of several ranks whole rows, as many for each.
  constexpr int64_t size() const {
    return ranks == 1 ? segments() : ((segments() - 1) / ranks / kRow + 1) * ranks * kRow;
  }
  constexpr int64_t place(int64_t segment) const {
    const int64_t index = segment / ranks;  // of its owner's
    return (index / kRow * ranks + segment % ranks) * kRow + index % kRow;
  }
};

/// sums[place(s)] = the sum of x² over segment s, in double, for each segment of the shard: the
/// same bits whoever owns it, and at any number of threads.
template <class Device>
struct SegmentNorms {
  View<Device, double> sums;    ///< SegmentSums of x and the shard's ranks
  View<Device, const float> x;  ///< the arena
  ArenaShard shard = {};
};
void segment_norms(CpuStream& stream, const SegmentNorms<CpuDevice>& args);

/// out[0] = the sum of all segments' sums, in one order for any number of ranks.
template <class Device>
struct NormOfSegments {
  View<Device, double> out;         ///< (1)
  View<Device, const double> sums;  ///< as `layout` says
  SegmentSums layout;
};
void norm_of_segments(CpuStream& stream, const NormOfSegments<CpuDevice>& args);

}  // namespace lockstep
