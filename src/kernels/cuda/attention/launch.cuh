#pragma once

// What the flash kernels share around them: the head sizes, the grid, the shared memory.

#include <cuda_runtime.h>

#include <type_traits>

#include "core/device/cuda_error.h"
#include "kernels/cuda/attention/flash_backward.cuh"
#include "kernels/cuda/attention/flash_forward.cuh"

namespace lockstep::cuda {

/// Calls body(size) with the smallest size, as a type, of the kernels' 32, 64, 96 and 128 that
/// holds a head: rows are filled up with zeros.
template <class Body>
void dispatch_head_dim(int64_t head_dim, Body body) {
  if (head_dim <= 32) {
    body(std::integral_constant<int, 32>{});
  } else if (head_dim <= 64) {
    body(std::integral_constant<int, 64>{});
  } else if (head_dim <= 96) {
    body(std::integral_constant<int, 96>{});
  } else {
    body(std::integral_constant<int, 128>{});
  }
}

/// One block for each `rows` positions of each head.
template <class Shape, class Args>
void launch_flash(CudaStream& stream, void (*kernel)(Args), const Args& args, int rows) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  Shape::kSharedBytes),
             "raising a kernel's shared memory");
  const dim3 grid(static_cast<unsigned>(args.heads.count),
                  static_cast<unsigned>((args.heads.time + rows - 1) / rows));
  kernel<<<grid, Shape::kThreads, Shape::kSharedBytes, stream.handle()>>>(args);
  check_cuda(cudaGetLastError(), "launching attention");
}

inline float score_scale(const AttentionShape& shape) {
  return 1.0F / sqrtf(static_cast<float>(shape.head_dim));
}

template <class Shape>
void launch_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  launch_flash<Shape>(stream, &flash_forward_kernel<Shape>,
                      FlashForward{.heads = heads_of(args.shape, args.out.data(), args.qkv.data()),
                                   .scale = score_scale(args.shape),
                                   .out = args.out.data(),
                                   .lse = args.lse.data(),
                                   .qkv = args.qkv.data()},
                      Shape::kQueries);
}

template <class DqShape, class DkvShape>
void launch_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  const FlashBackward flash{.heads = heads_of(args.shape, args.dqkv.data(), args.dout.data(),
                                              args.out.data(), args.qkv.data()),
                            .scale = score_scale(args.shape),
                            .dqkv = args.dqkv.data(),
                            .delta = args.delta.data(),
                            .dout = args.dout.data(),
                            .out = args.out.data(),
                            .lse = args.lse.data(),
                            .qkv = args.qkv.data()};
  launch_flash<DqShape>(stream, &flash_dq_kernel<DqShape>, flash, DqShape::kOwn);
  launch_flash<DkvShape>(stream, &flash_dkv_kernel<DkvShape>, flash, DkvShape::kOwn);
}

}  // namespace lockstep::cuda
