#include "trainer/device_facts.h"
#include "trainer/trainer.h"
#include "trainer/trainer_impl.h"

namespace lockstep {

template class Trainer<CpuDevice>;

ExitCode train_on_cpu(const Group& group, const TrainConfig& config, const RunPlan& plan) {
  return train_on<CpuDevice>(group, config, plan, [&] { return make_cpu_stream(group, config); });
}

}  // namespace lockstep
