#include "kernels/cuda/gemm/product.cuh"
#include "kernels/cuda/gemm/simt.cuh"

namespace lockstep::cuda {

void launch_simt_unaligned(CudaStream& stream, const GemmLaunch& launch) {
  launch_plain_product<SimtKernel<layout::SimtTile64x64, false>>(stream, launch);
}

}  // namespace lockstep::cuda
