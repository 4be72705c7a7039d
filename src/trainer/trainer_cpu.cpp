#include "core/base/error.h"
#include "trainer/cpu_threads.h"
#include "trainer/trainer.h"
#include "trainer/trainer_impl.h"

namespace lockstep {

template class Trainer<CpuDevice>;

ExitCode train_on_cpu(const Group& group, const TrainConfig& config) {
  const int threads =
      config.threads == 0 ? default_threads(group) : static_cast<int>(config.threads);
  return train_on<CpuDevice>(group, config, [&] {
    if (config.precision != "fp32") {
      throw UsageError(
          "--precision {} is for the tensor cores of a GPU and this run is on the CPU: take "
          "--precision fp32, or --device cuda where there is one",
          config.precision);
    }
    return CpuStream(threads);
  });
}

}  // namespace lockstep
