// Flash attention on tensor cores: forward.

#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/mma_products.cuh"
#include "kernels/cuda/attention/wgmma_attention.h"

namespace lockstep::cuda {
namespace {

// 32 queries a warp share what it reads of k and v; larger heads leave registers for 16.
template <int kHeadDim>
using Shape =
    ForwardShape<MmaProducts<kHeadDim, kHeadDim <= 64 ? 2 : 1, kHeadDim <= 64 ? 64 : 32, true>, 4,
                 2>;

}  // namespace

void flash_tf32_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  if (wgmma_serves(stream, args)) {
    return wgmma_forward(stream, args);
  }
  dispatch_head_dim(args.shape.head_dim,
                    [&](auto size) { launch_forward<Shape<size()>>(stream, args); });
}

}  // namespace lockstep::cuda
