#include "kernels/segment_norms.h"

#include <algorithm>

#include "kernels/check_size.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce_isa.h"

namespace lockstep {

void segment_norms(CpuStream& stream, const SegmentNorms<CpuDevice>& args) {
  static const auto kRange = LOCKSTEP_SELECT_ISA(sum_squares_range);
  const int64_t size = args.x.size();
  const SegmentSums layout{size, args.shard.ranks};
  check_size("segment_norms: sums", args.sums.size(), layout.size());
  const int64_t owned = args.shard.size(size);
  parallel_for_blocks(stream.threads(), owned, kSegmentElements, [&](int64_t begin, int64_t count) {
    const int64_t at = args.shard.position(begin);
    args.sums[layout.place(at / kSegmentElements)] = kRange(count, args.x.data() + at);
  });
}

void norm_of_segments(CpuStream& /*stream*/, const NormOfSegments<CpuDevice>& args) {
  check_size("norm_of_segments: out", args.out.size(), 1);
  check_size("norm_of_segments: sums", args.sums.size(), args.layout.size());
  double total = 0;
  for (int64_t segment = 0; segment < args.layout.segments(); ++segment) {
    total += args.sums[args.layout.place(segment)];
  }
  args.out[0] = total;
}

}  // namespace lockstep
