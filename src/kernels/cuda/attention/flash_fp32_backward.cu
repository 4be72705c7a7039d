// Flash attention in FFMA: backward.

#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/simt_products.cuh"

namespace lockstep::cuda {
namespace {

template <int kHeadDim>
using DqShape = BackwardShape<SimtProducts<kHeadDim, 8, 4>, kHeadDim <= 64 ? 4 : 2, 2>;

// dk and dv together take half of a lane's registers: half the rows for the larger heads.
template <int kHeadDim>
using DkvShape = BackwardShape<SimtProducts<kHeadDim, kHeadDim <= 64 ? 8 : 4, 4>, 4, 2>;

}  // namespace

void flash_fp32_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  dispatch_head_dim(args.shape.head_dim, [&](auto size) {
    launch_backward<DqShape<size()>, DkvShape<size()>>(stream, args);
  });
}

}  // namespace lockstep::cuda
