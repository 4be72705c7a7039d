// attention_bench in a build without CUDA.
#include "attention_bench_cuda.h"
#include "core/device/cuda_device.h"

namespace lockstep {

void run_attention_bench(const AttentionBench& /*bench*/) {
  require_cuda_device();
}

}  // namespace lockstep
