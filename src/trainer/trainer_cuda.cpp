#include "comm/cuda/communicator.h"
#include "core/device/cuda_branch.h"
#include "kernels/cuda/ops.h"
#include "trainer/cuda_device_facts.h"
#include "trainer/trainer.h"
#include "trainer/trainer_impl.h"

namespace lockstep {

template class Trainer<CudaDevice>;

bool cuda_available() {
  return cuda_device_count() > 0;
}

ExitCode train_on_cuda(const Group& group, const TrainConfig& config, const RunPlan& plan) {
  return train_on<CudaDevice>(group, config, plan, [&] { return make_cuda_stream(group, config); });
}

}  // namespace lockstep
