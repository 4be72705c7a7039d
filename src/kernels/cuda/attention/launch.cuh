#pragma once

// What the flash kernels share around them: the head sizes, the grid, the shared memory.

#include <cuda_runtime.h>

#include <type_traits>

#include "core/device/cuda_error.h"
#include "kernels/cuda/allow_shared.cuh"
#include "kernels/cuda/attention/flash_backward.cuh"
#include "kernels/cuda/attention/flash_forward.cuh"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/launchers.h"

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

/// `blocks` for each head.
template <class Args>
void launch_flash(CudaStream& stream, void (*kernel)(Args), const Args& args, int threads,
                  int shared_bytes, int blocks) {
  allow_shared(kernel, shared_bytes);
  const dim3 grid(static_cast<unsigned>(args.heads.count), static_cast<unsigned>(blocks));
  kernel<<<grid, threads, shared_bytes, stream.handle()>>>(args);
  check_cuda(cudaGetLastError(), "launching attention");
}

/// Blocks of `rows` positions each.
inline int blocks_of(int64_t time, int rows) {
  return static_cast<int>((time + rows - 1) / rows);
}

template <class Shape>
void launch_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  launch_flash(stream, &flash_forward_kernel<Shape>,
               FlashForward{.heads = heads_of(args.shape, args.out.data(), args.qkv.data()),
                            .scale = score_scale(args.shape.head_dim),
                            .out = args.out.data(),
                            .lse = args.lse.data(),
                            .qkv = args.qkv.data()},
               Shape::kThreads, Shape::kSharedBytes, blocks_of(args.shape.time, Shape::kQueries));
}

template <class DqShape, class DkvShape>
void launch_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  sum_delta(stream, args);
  const FlashBackward flash{
      .heads = heads_of(args.shape, args.dqkv.data(), args.dout.data(), args.qkv.data()),
      .scale = score_scale(args.shape.head_dim),
      .dqkv = args.dqkv.data(),
      .delta = args.delta.data(),
      .dout = args.dout.data(),
      .lse = args.lse.data(),
      .qkv = args.qkv.data()};
  using Turns = BackwardTurns<DqShape, DkvShape>;
  launch_flash(stream, &flash_backward_kernel<DqShape, DkvShape>, flash, DqShape::kThreads,
               Turns::kSharedBytes, Turns::kBlocks * Turns::count(flash.heads.time));
}

}  // namespace lockstep::cuda
