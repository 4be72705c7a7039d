// LayerNorm's backward without x̂ · mean(g · x̂), in place of the product's: a program that has this
// object takes nothing of the library's.

#include <cuda_runtime.h>

#include "core/device/cuda_error.h"
#include "kernels/cuda/ops.h"

namespace lockstep {
namespace {

struct Rows {
  float* dx;
  float* dgamma;
  float* dbeta;
  const float* dy;
  const float* x;
  const float* mean;
  const float* rstd;
  const float* gamma;
  int64_t rows;
  int64_t channels;
};

__global__ void dx_kernel(Rows args) {
  const int64_t row = blockIdx.x;
  const float* const dy = args.dy + row * args.channels;
  float mean = 0;
  for (int64_t c = 0; c < args.channels; ++c) {
    mean += dy[c] * args.gamma[c] / static_cast<float>(args.channels);
  }
  for (int64_t c = threadIdx.x; c < args.channels; c += blockDim.x) {
    args.dx[row * args.channels + c] += args.rstd[row] * (dy[c] * args.gamma[c] - mean);
  }
}

__global__ void sums_kernel(Rows args) {
  for (int64_t c = threadIdx.x; c < args.channels; c += blockDim.x) {
    float dgamma = 0;
    float dbeta = 0;
    for (int64_t row = 0; row < args.rows; ++row) {
      const float dy = args.dy[row * args.channels + c];
      dgamma += dy * (args.x[row * args.channels + c] - args.mean[row]) * args.rstd[row];
      dbeta += dy;
    }
    args.dgamma[c] = dgamma;
    args.dbeta[c] = dbeta;
  }
}

}  // namespace

void layernorm_backward(CudaStream& stream, const LayerNormBackward<CudaDevice>& args) {
  const Rows rows = {args.dx.data(), args.dgamma.data(), args.dbeta.data(), args.dy.data(),
                     args.x.data(),  args.mean.data(),   args.rstd.data(),  args.gamma.data(),
                     args.rows,      args.channels};
  dx_kernel<<<static_cast<unsigned>(args.rows), 64, 0, stream.handle()>>>(rows);
  sums_kernel<<<1, 64, 0, stream.handle()>>>(rows);
  check_cuda(cudaGetLastError(), "launching the sabotaged LayerNorm backward");
}

}  // namespace lockstep
