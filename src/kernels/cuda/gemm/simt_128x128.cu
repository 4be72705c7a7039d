#include "kernels/cuda/gemm/product.cuh"
#include "kernels/cuda/gemm/simt.cuh"

namespace lockstep::cuda {

void launch_simt_128x128(CudaStream& stream, const GemmLaunch& launch) {
  launch_product<SimtKernel<layout::SimtTile128x128, true>>(stream, launch);
}

}  // namespace lockstep::cuda
