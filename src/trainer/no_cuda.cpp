// What a build without CUDA has in place of a trainer on the GPU.
#include "core/base/error.h"
#include "trainer/trainer.h"

namespace lockstep {

bool cuda_available() {
  return false;
}

ExitCode train_on_cuda(const Group& /*group*/, const TrainConfig& /*config*/) {
  throw UnsupportedError(
      "--device cuda: this build has no CUDA backend; install the CUDA toolkit and build again, or "
      "use --device cpu");
}

}  // namespace lockstep
