#include "kernels/cuda/gemm/wgmma_launch.cuh"

namespace lockstep::cuda {

void launch_split_128x96(CudaStream& stream, const GemmLaunch& launch) {
  launch_split<layout::SplitTile128x96>(stream, launch);
}

}  // namespace lockstep::cuda
