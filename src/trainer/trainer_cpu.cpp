#include "trainer/cpu_threads.h"
#include "trainer/trainer.h"
#include "trainer/trainer_impl.h"

namespace lockstep {

template class Trainer<CpuDevice>;

ExitCode train_on_cpu(const Group& group, const TrainConfig& config) {
  const int threads =
      config.threads == 0 ? default_threads(group) : static_cast<int>(config.threads);
  CpuStream stream(threads);
  return train_on<CpuDevice>(group, config, stream);
}

}  // namespace lockstep
