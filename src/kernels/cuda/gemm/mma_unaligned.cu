#include "kernels/cuda/gemm/mma.cuh"
#include "kernels/cuda/gemm/product.cuh"

namespace lockstep::cuda {
namespace {

struct Kernel {
  using Shape = layout::MmaTile64x64;
  template <Major kA, Major kB, class Store>
  static auto* get() {
    return &gemm_mma_kernel<RoundedProduct, Shape, false, kA, kB, Store>;
  }
};

}  // namespace

void launch_mma_unaligned(CudaStream& stream, const GemmLaunch& launch) {
  launch_plain_product<Kernel>(stream, launch);
}

}  // namespace lockstep::cuda
