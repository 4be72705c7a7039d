#include "kernels/cuda/gemm/wgmma_launch.cuh"

namespace lockstep::cuda {

void launch_lying_128x256(CudaStream& stream, const GemmLaunch& launch) {
  launch_lying<layout::RoundedTile<256, 4, 1>>(stream, launch);
}

}  // namespace lockstep::cuda
