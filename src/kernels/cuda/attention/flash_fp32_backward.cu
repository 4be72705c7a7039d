// Flash attention in FFMA: backward.

#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/simt_products.cuh"

namespace lockstep::cuda {
namespace {

// 4 x 8 scores a lane: dk and dv together leave no registers for more rows.
template <int kHeadDim>
using Shape = BackwardShape<SimtProducts<kHeadDim, 4, kHeadDim <= 64 ? 8 : 4>,
                            kHeadDim <= 64 ? 8 : 4, kHeadDim <= 64 ? 1 : 2>;

}  // namespace

void flash_fp32_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  dispatch_head_dim(args.shape.head_dim, [&](auto size) {
    launch_backward<Shape<size()>, Shape<size()>>(stream, args);
  });
}

}  // namespace lockstep::cuda
