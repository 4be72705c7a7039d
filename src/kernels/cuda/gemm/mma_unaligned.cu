#include "kernels/cuda/gemm/mma.cuh"
#include "kernels/cuda/gemm/product.cuh"

namespace lockstep::cuda {

void launch_mma_unaligned(CudaStream& stream, const GemmLaunch& launch) {
  launch_plain_product<RoundedMmaKernel<layout::MmaTile64x64, false>>(stream, launch);
}

}  // namespace lockstep::cuda
