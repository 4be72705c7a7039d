#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "gpu/fragment_probe.h"
#include "kernels/cuda/ptx/mma.cuh"

namespace lockstep {
namespace {

__global__ void probe_kernel(float* d) {
  const int lane = static_cast<int>(threadIdx.x);
  const int hot_a = static_cast<int>(blockIdx.x) / kProbeB;
  const int hot_b = static_cast<int>(blockIdx.x) % kProbeB;
  const uint32_t one = __float_as_uint(1.0F);
  uint32_t a[4];
  for (int i = 0; i < 4; ++i) {
    a[i] = lane * 4 + i == hot_a ? one : 0;
  }
  const uint2 b = make_uint2(lane * 2 == hot_b ? one : 0, lane * 2 + 1 == hot_b ? one : 0);
  float sum[4] = {};
  cuda::mma_tf32(sum, a, b);
  for (int i = 0; i < 4; ++i) {
    d[static_cast<int>(blockIdx.x) * kProbeD + lane * 4 + i] = sum[i];
  }
}

}  // namespace

void probe_fragments(CudaStream& stream, CudaView<float> d) {
  probe_kernel<<<kProbeA * kProbeB, 32, 0, stream.handle()>>>(d.data());
  check_cuda(cudaGetLastError(), "launching the fragment probe");
}

}  // namespace lockstep
