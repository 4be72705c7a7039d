#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/transport_select.h"
#include "core/base/error.h"
#include "trainer/bucket_choice.h"
#include "trainer/config.h"
#include "trainer/group.h"
#include "trainer/reduce_check.h"
#include "trainer/replica_shard.h"
#include "trainer/reporter.h"
#include "trainer/run_plan.h"
#include "trainer/step_options.h"

// What a run's options mean for the parts that a trainer is made of.

namespace lockstep {

/// Of the run's buckets; what was measured for it is printed. Without overlap there are none.
template <class Device>
int64_t bucket_elements(const Group& group, const TrainConfig& config,
                        typename Device::Stream& stream, Communicator<Device>& communicator,
                        const WindowLayout& layout) {
  if (!config.overlap) {
    return 1;
  }
  const BucketSize size = bucket_size<Device>(config.bucket_elements(), group.bootstrap, stream,
                                              communicator, layout.summed().size());
  if (group.is_root() && size.cost) {
    print_buckets(*size.cost, size.elements);
  }
  return size.elements;
}

inline StepOptions step_options(const Group& group, const TrainConfig& config, const RunPlan& plan,
                                int64_t bucket_elements) {
  return {.batch = plan.batch,
          .rank = group.rank(),
          .reduction = config.overlap ? Reduction::kOverlapped : Reduction::kAfterBackward,
          // Where sums depend on how they are cut, it must not be time that cuts them.
          .trial = config.overlap && config.bucket_elements() == 0 &&
                   has_ring_bits(transport_choice(config.transport), group.world_size()),
          .bucket_elements = bucket_elements,
          .check_interval = config.check_interval,
          .graph = config.cuda_graph && !config.verify_reduce};
}

/// With --verify-reduce and several ranks.
template <class Device>
std::unique_ptr<ReduceCheck<Device>> make_reduce_check(const Group& group,
                                                       const TrainConfig& config,
                                                       const CommunicatorOptions& options,
                                                       const WindowLayout& layout,
                                                       const std::string& transport) {
  if (!config.verify_reduce || group.world_size() == 1) {
    return nullptr;
  }
  if (!has_ring_bits(options.transport, group.world_size())) {
    throw UsageError("--verify-reduce compares bits, and --transport {} has its own for {} ranks",
                     config.transport, group.world_size());
  }
  return std::make_unique<ReduceCheck<Device>>(group.bootstrap, group.peers, group.control, options,
                                               transport, layout.shard(group.rank()));
}

}  // namespace lockstep
