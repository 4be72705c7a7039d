#include "kernels/cuda/gemm/mma.cuh"
#include "kernels/cuda/gemm/product.cuh"

namespace lockstep::cuda {

void launch_mma_64x64(CudaStream& stream, const GemmLaunch& launch) {
  launch_product<RoundedMmaKernel<layout::MmaTile64x64, true>>(stream, launch);
}

}  // namespace lockstep::cuda
