#include "kernels/cuda/gemm/product.cuh"
#include "kernels/cuda/gemm/simt.cuh"

namespace lockstep::cuda {

void launch_simt_128x64(CudaStream& stream, const GemmLaunch& launch) {
  launch_product<SimtKernel<layout::SimtTile128x64, true>>(stream, launch);
}

}  // namespace lockstep::cuda
