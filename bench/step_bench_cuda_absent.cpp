// What step_bench has of a GPU in a build without CUDA.
#include "core/device/cuda_device.h"
#include "step_bench.h"

namespace lockstep {

StepFigures measure_on_cuda(const Group& /*group*/, const StepBenchConfig& /*config*/) {
  require_cuda_device();
  return {};
}

}  // namespace lockstep
