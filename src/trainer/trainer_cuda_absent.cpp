// What a build without CUDA has in place of a trainer on the GPU.
#include "core/device/cuda_device.h"
#include "trainer/trainer.h"

namespace lockstep {

bool cuda_available() {
  return false;
}

ExitCode train_on_cuda(const Group& /*group*/, const TrainConfig& /*config*/,
                       const RunPlan& /*plan*/) {
  require_cuda_device();
  return ExitCode::kUnsupported;
}

}  // namespace lockstep
