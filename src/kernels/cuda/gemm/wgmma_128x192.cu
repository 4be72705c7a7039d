#include "kernels/cuda/gemm/wgmma_launch.cuh"

namespace lockstep::cuda {

void launch_wgmma_128x192(CudaStream& stream, const GemmLaunch& launch) {
  launch_rounded<layout::WgmmaTile128x192>(stream, launch);
}

}  // namespace lockstep::cuda
