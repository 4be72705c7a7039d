// Flash attention on tensor cores: backward.

#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/mma_products.cuh"
#include "kernels/cuda/attention/wgmma_attention.h"

namespace lockstep::cuda {
namespace {

// 32 queries or 16 keys a warp: a warp's rows share what it reads of the other side. dk and dv
// leave no registers for more keys, nor for their fragments where heads are large.
template <int kHeadDim>
using DqShape = BackwardShape<MmaProducts<kHeadDim, kHeadDim <= 64 ? 2 : 1, 32, false>, 4, 2>;

template <int kHeadDim>
using DkvShape =
    BackwardShape<MmaProducts<kHeadDim, 1, 32, kHeadDim <= 64>, 4, kHeadDim <= 64 ? 2 : 1>;

}  // namespace

void flash_tf32_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  if (wgmma_serves(stream, args)) {
    return wgmma_backward(stream, args);
  }
  dispatch_head_dim(args.shape.head_dim, [&](auto size) {
    launch_backward<DqShape<size()>, DkvShape<size()>>(stream, args);
  });
}

}  // namespace lockstep::cuda
