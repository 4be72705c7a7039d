// Flash attention on tensor cores: forward.

#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/mma_products.cuh"

namespace lockstep::cuda {
namespace {

template <int kHeadDim>
using Shape = ForwardShape<MmaProducts<kHeadDim, 1, 32, true>, 4, kHeadDim <= 64 ? 3 : 2>;

}  // namespace

void flash_tf32_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  dispatch_head_dim(args.shape.head_dim,
                    [&](auto size) { launch_forward<Shape<size()>>(stream, args); });
}

}  // namespace lockstep::cuda
