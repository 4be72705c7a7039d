#include "kernels/cuda/gemm/wgmma_launch.cuh"

namespace lockstep::cuda {

void launch_wgmma_128x96(CudaStream& stream, const GemmLaunch& launch) {
  launch_rounded<layout::RoundedTile<96, 3, 2>>(stream, launch);
}

}  // namespace lockstep::cuda
