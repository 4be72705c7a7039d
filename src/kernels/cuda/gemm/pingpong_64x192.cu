#include "kernels/cuda/gemm/wgmma_launch.cuh"

namespace lockstep::cuda {

void launch_pingpong_64x192(CudaStream& stream, const GemmLaunch& launch) {
  launch_pingpong<layout::PingPongTile64x192>(stream, launch);
}

}  // namespace lockstep::cuda
