#include "kernels/cuda/gemm/mma.cuh"
#include "kernels/cuda/gemm/product.cuh"

namespace lockstep::cuda {
namespace {

struct Kernel {
  using Shape = layout::MmaTile128x128;
  template <Major kA, Major kB, class Store>
  static auto* get() {
    return &gemm_mma_kernel<RoundedProduct, Shape, true, kA, kB, Store>;
  }
};

}  // namespace

void launch_mma_128x128(CudaStream& stream, const GemmLaunch& launch) {
  launch_product<Kernel>(stream, launch);
}

}  // namespace lockstep::cuda
