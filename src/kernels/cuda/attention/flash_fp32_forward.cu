// Flash attention in FFMA: forward.

#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/simt_products.cuh"

namespace lockstep::cuda {
namespace {

// 8 x 8 scores a lane, 8 x 4 where the larger rows of out leave fewer registers.
template <int kHeadDim>
using Shape = ForwardShape<SimtProducts<kHeadDim, 8, kHeadDim <= 64 ? 8 : 4>, 4, 2>;

}  // namespace

void flash_fp32_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  dispatch_head_dim(args.shape.head_dim,
                    [&](auto size) { launch_forward<Shape<size()>>(stream, args); });
}

}  // namespace lockstep::cuda
