// op_bench --device cuda in a build without CUDA.
#include "core/device/cuda_device.h"
#include "op_bench_cuda.h"

namespace lockstep {

void run_cuda_op_bench(const CudaOpBench& /*bench*/) {
  require_cuda_device();
}

}  // namespace lockstep
