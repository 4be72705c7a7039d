#include "comm/cuda_communicator.h"
#include "core/device/cuda_branch.h"
#include "kernels/cuda/ops.h"
#include "step_bench.h"
#include "step_bench_impl.h"
#include "step_profile.h"
#include "trainer/cuda_facts.h"

namespace lockstep {

/// What the device holds now: everything stays allocated to the end.
static int64_t memory_used(const CudaStream& stream) {
  return stream.facts().memory_bytes - CudaDevice::free_bytes();
}

StepFigures measure_on_cuda(const Group& group, const StepBenchConfig& config) {
  CudaStream stream = make_cuda_stream(group, config.train);
  StepFigures figures = StepBench<CudaDevice>(group, config, stream).measure();
  if (config.profile) {
    const BatchPlan batch =
        plan_batch(config.train.batch_size, config.train.global_batch_size,
                   config.train.gradient_accumulation_steps, group.world_size());
    figures.profile = profile_step(stream, config.train.model(config.vocab_size),
                                   config.train.adamw(), batch.batch_size);
  }
  return figures;
}

}  // namespace lockstep
