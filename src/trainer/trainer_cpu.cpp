#include "comm/cpu_threads.h"
#include "trainer/trainer.h"
#include "trainer/trainer_impl.h"

namespace lockstep {

template class Trainer<CpuDevice>;

ExitCode train_on_cpu(const Group& group, const TrainConfig& config, const RunPlan& plan) {
  const int fair = default_threads(group.bootstrap,
                                   group.peers);  // collective, and --threads is each rank's own
  const int threads = config.threads == 0 ? fair : static_cast<int>(config.threads);
  return train_on<CpuDevice>(group, config, plan, [&] { return CpuStream(threads); });
}

}  // namespace lockstep
