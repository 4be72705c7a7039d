// Flash attention on tensor cores: backward.

#include "kernels/cuda/attention/launch.cuh"
#include "kernels/cuda/attention/launchers.h"
#include "kernels/cuda/attention/mma_products.cuh"

namespace lockstep::cuda {
namespace {

template <int kHeadDim>
using DqShape = BackwardShape<MmaProducts<kHeadDim, 1, 32, kHeadDim <= 64>, 4, 2>;

template <int kHeadDim>
using DkvShape =
    BackwardShape<MmaProducts<kHeadDim, 1, 32, kHeadDim <= 64>, 4, kHeadDim <= 64 ? 2 : 1>;

}  // namespace

void flash_tf32_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  dispatch_head_dim(args.shape.head_dim, [&](auto size) {
    launch_backward<DqShape<size()>, DkvShape<size()>>(stream, args);
  });
}

}  // namespace lockstep::cuda
