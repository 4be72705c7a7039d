#pragma once

#include <cstdint>

#include "core/base/ceil_div.h"
#include "core/base/range.h"
#include "kernels/segment_norms.h"
#include "trainer/batch_plan.h"
#include "trainer/step_record.h"

namespace lockstep {

/// Where everything that ranks exchange lies in the communicator's window: what is summed, which is
/// the gradient arena, the step record behind it, then one slot per evaluation batch; and where
/// each rank updates a shard of its own, what is gathered.
struct WindowLayout {
  Range gradients;
  StepRecord record;
  Range evaluation;
  // Empty without shards. Both begin with a segment of rank 0's, so that all of them, and of the
  // gradients, are owned alike.
  Range segment_sums;  ///< doubles: SegmentSums
  Range parameters;
  int shards = 1;

  /// `sharded` means nothing to one rank.
  WindowLayout(int64_t arena_elements, const BatchPlan& plan, int64_t evaluation_batches,
               bool sharded = false)
      : gradients{0, arena_elements},
        record(arena_elements, plan.micro_batches(), plan.world_size),
        evaluation{record.range().end, record.range().end + evaluation_batches},
        segment_sums{evaluation.end, evaluation.end},
        parameters(segment_sums) {
    if (sharded && plan.world_size > 1) {
      shards = plan.world_size;
      const int64_t group = shards * kSegmentElements;
      const int64_t sums = SegmentSums{arena_elements, shards}.size() *
                           static_cast<int64_t>(sizeof(double) / sizeof(float));
      segment_sums.begin = ceil_div(evaluation.end, group) * group;
      segment_sums.end = segment_sums.begin + sums;
      parameters = {segment_sums.end, segment_sums.end + arena_elements};
    }
  }

  bool sharded() const { return shards > 1; }
  /// What a rank updates of the arena: all of it without shards.
  ArenaShard shard(int rank) const { return sharded() ? ArenaShard{rank, shards} : ArenaShard{}; }
  Range summed() const { return {0, evaluation.end}; }
  int64_t elements() const { return parameters.end; }
};

}  // namespace lockstep
