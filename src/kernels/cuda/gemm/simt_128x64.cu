#include "kernels/cuda/gemm/product.cuh"
#include "kernels/cuda/gemm/simt.cuh"

namespace lockstep::cuda {
namespace {

struct Kernel {
  using Shape = layout::SimtTile128x64;
  template <Major kA, Major kB, class Store>
  static auto* get() {
    return &gemm_simt_kernel<Shape, true, kA, kB, Store>;
  }
};

}  // namespace

void launch_simt_128x64(CudaStream& stream, const GemmLaunch& launch) {
  launch_product<Kernel>(stream, launch);
}

}  // namespace lockstep::cuda
