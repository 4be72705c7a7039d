#include "kernels/cuda/gemm/wgmma_launch.cuh"

namespace lockstep::cuda {

void launch_wgmma_128x256(CudaStream& stream, const GemmLaunch& launch) {
  launch_rounded<layout::WgmmaTile128x256>(stream, launch);
}

}  // namespace lockstep::cuda
