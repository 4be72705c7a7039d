#include "kernels/cuda/gemm/wgmma_launch.cuh"

namespace lockstep::cuda {

void launch_wgmma_128x96(CudaStream& stream, const GemmLaunch& launch) {
  launch_rounded<layout::WgmmaTile128x96>(stream, launch);
}

}  // namespace lockstep::cuda
