#include "comm/cuda/communicator.h"
#include "core/device/cuda_branch.h"
#include "kernels/cuda/ops.h"
#include "step_bench.h"
#include "step_bench_impl.h"
#include "step_profile.h"
#include "trainer/cuda_device_facts.h"

namespace lockstep {

StepFigures measure_on_cuda(const Group& group, const StepBenchConfig& config) {
  CudaStream stream = make_cuda_stream(group, config.train);
  const int64_t before = CudaDevice::free_bytes();
  StepBench<CudaDevice> bench(group, config, stream);
  StepFigures figures = bench.measure();
  figures.memory_bytes = before - CudaDevice::free_bytes();  // nothing was given back meanwhile
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
