// What a build without the CUDA toolkit has of core/device/cuda_device.h.
#include "core/base/error.h"
#include "core/device/cuda_device.h"

namespace lockstep {

int cuda_device_count() {
  return 0;
}

void require_cuda_device() {
  throw UnsupportedError(
      "this build has no CUDA backend; install the CUDA toolkit and configure again with "
      "-DLOCKSTEP_CUDA=ON, or use --device cpu");
}

}  // namespace lockstep
