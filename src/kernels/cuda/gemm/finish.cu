// Behind products that are not finished by the kernel that computed them: k was sliced, rows are
// not aligned, or their features are not fused.

#include <cuda_runtime.h>

#include <algorithm>

#include "core/base/ceil_div.h"
#include "core/device/cuda_error.h"
#include "kernels/cuda/aligned.h"
#include "kernels/cuda/gemm/epilogue.cuh"
#include "kernels/cuda/gemm/features.h"
#include "kernels/cuda/gemm/finish.h"
#include "kernels/cuda/grid.h"

namespace lockstep::cuda {
namespace {

constexpr int kThreads = 256;

struct Finish {
  const float* partials;
  float* c;
  EpilogueOperands with;
  int64_t size;  // m n
  int n;
  int slices;
  unsigned features;
};

__global__ void __launch_bounds__(kThreads) finish_kernel(Finish args) {
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < args.size;
       at += static_cast<int64_t>(gridDim.x) * kThreads) {
    float value = args.partials[at];
    for (int slice = 1; slice < args.slices; ++slice) {
      value += args.partials[slice * args.size + at];
    }
    if ((args.features & kBias) != 0) {
      value += args.with.bias[at % args.n];
    }
    if ((args.features & kResidual) != 0) {
      value += args.with.residual[at];
    }
    if ((args.features & (kGeluTanh | kGeluErf)) != 0) {
      const GeluAt gelu = (args.features & kGeluTanh) != 0 ? gelu_at<Gelu::kTanh>(value)
                                                           : gelu_at<Gelu::kErf>(value);
      value = gelu.value;
      if (args.with.gelu_derivative != nullptr) {
        args.with.gelu_derivative[at] = gelu.derivative;
      }
    }
    if ((args.features & kFactor) != 0) {
      value *= args.with.factor[at];
    }
    if ((args.features & kAccumulate) != 0) {
      value += args.c[at];
    }
    args.c[at] = value;
  }
}

// The weight gradient's case, four elements at a time.
template <bool kAdd>
__global__ void __launch_bounds__(kThreads)
    sum_slices_kernel(const float4* partials, float4* c, int64_t size, int slices) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= size) {
    return;
  }
  float4 value = partials[at];
#pragma unroll 4
  for (int slice = 1; slice < slices; ++slice) {
    const float4 next = partials[slice * size + at];
    value = make_float4(value.x + next.x, value.y + next.y, value.z + next.z, value.w + next.w);
  }
  if constexpr (kAdd) {
    const float4 old = c[at];
    value = make_float4(old.x + value.x, old.y + value.y, old.z + value.z, old.w + value.w);
  }
  c[at] = value;
}

constexpr int kTile = 32;

// c (m, n) from sums (slices, n, m), a tile at a time.
template <bool kAdd>
__global__ void __launch_bounds__(kThreads)
    transpose_slices_kernel(const float* partials, float* c, int m, int n, int slices) {
  __shared__ float tile[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x) % kTile;
  const int y = static_cast<int>(threadIdx.x) / kTile;
  const int row0 = static_cast<int>(blockIdx.x) * kTile;  // of c
  const int column0 = static_cast<int>(blockIdx.y) * kTile;
  const int64_t size = static_cast<int64_t>(m) * n;
#pragma unroll
  for (int i = y; i < kTile; i += kThreads / kTile) {
    if (column0 + i < n && row0 + x < m) {
      const int64_t at = static_cast<int64_t>(column0 + i) * m + row0 + x;
      float value = partials[at];
#pragma unroll 4
      for (int slice = 1; slice < slices; ++slice) {
        value += partials[slice * size + at];
      }
      tile[i][x] = value;
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = y; i < kTile; i += kThreads / kTile) {
    if (row0 + i < m && column0 + x < n) {
      float* const to = c + static_cast<int64_t>(row0 + i) * n + column0 + x;
      *to = kAdd ? *to + tile[x][i] : tile[x][i];
    }
  }
}

}  // namespace

void finish_transposed(CudaStream& stream, const Gemm<CudaDevice>& problem, const float* partials,
                       int64_t slices) {
  const dim3 grid(static_cast<unsigned>(ceil_div(problem.m, kTile)),
                  blocks_down(problem.n, kTile, "columns"));
  auto* kernel =
      problem.accumulate ? &transpose_slices_kernel<true> : &transpose_slices_kernel<false>;
  kernel<<<grid, kThreads, 0, stream.handle()>>>(
      partials, problem.c.data(), static_cast<int>(problem.m), static_cast<int>(problem.n),
      static_cast<int>(slices));
  check_cuda(cudaGetLastError(), "launching the end of a matrix product");
}

void finish_product(CudaStream& stream, const Gemm<CudaDevice>& problem, const float* partials,
                    int64_t slices, unsigned features) {
  const int64_t size = problem.m * problem.n;
  const bool fours = size % 4 == 0 && aligned16(problem.c.data());
  if (fours && (features & ~kAccumulate) == 0) {
    const auto blocks = static_cast<unsigned>(ceil_div(size / 4, kThreads));
    auto* kernel = features == kAccumulate ? &sum_slices_kernel<true> : &sum_slices_kernel<false>;
    kernel<<<blocks, kThreads, 0, stream.handle()>>>(reinterpret_cast<const float4*>(partials),
                                                     reinterpret_cast<float4*>(problem.c.data()),
                                                     size / 4, static_cast<int>(slices));
  } else {
    const int64_t most = int64_t{32} * stream.facts().multiprocessors;
    const auto blocks = static_cast<unsigned>(std::min(ceil_div(size, kThreads), most));
    finish_kernel<<<blocks, kThreads, 0, stream.handle()>>>({.partials = partials,
                                                             .c = problem.c.data(),
                                                             .with = epilogue_operands_of(problem),
                                                             .size = size,
                                                             .n = static_cast<int>(problem.n),
                                                             .slices = static_cast<int>(slices),
                                                             .features = features});
  }
  check_cuda(cudaGetLastError(), "launching the end of a matrix product");
}

}  // namespace lockstep::cuda
