// gemm_bench --device cuda in a build without CUDA.
#include "core/device/cuda_device.h"
#include "gemm_bench_cuda.h"

namespace lockstep {

void run_cuda_gemm_bench(const CudaGemmBench& /*bench*/) {
  require_cuda_device();
}

}  // namespace lockstep
