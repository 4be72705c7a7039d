#include "kernels/cuda/gemm/wgmma_launch.cuh"

namespace lockstep::cuda {

void launch_wgmma_mn_128x128(CudaStream& stream, const GemmLaunch& launch) {
  launch_mn_major<layout::WgmmaTile128x128>(stream, launch);
}

}  // namespace lockstep::cuda
