#include "kernels/cuda/gemm/mma.cuh"
#include "kernels/cuda/gemm/product.cuh"

namespace lockstep::cuda {

void launch_mma_128x128(CudaStream& stream, const GemmLaunch& launch) {
  launch_product<RoundedMmaKernel<layout::MmaTile128x128, true>>(stream, launch);
}

}  // namespace lockstep::cuda
