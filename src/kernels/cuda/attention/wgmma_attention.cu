// The launches of attention by wgmma.

#include "core/device/cuda_error.h"
#include "kernels/cuda/allow_shared.cuh"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/transposed_heads.cuh"
#include "kernels/cuda/attention/wgmma_attention.h"
#include "kernels/cuda/attention/wgmma_backward.cuh"
#include "kernels/cuda/attention/wgmma_forward.cuh"
#include "kernels/cuda/tma/tensor_map.cuh"

namespace lockstep::cuda {
namespace {

using Shape = WgmmaAttentionShape;
static_assert(Shape::kOwn == kWgmmaTokens);
static_assert(kTransposedMatrices == kWgmmaTransposedMatrices);

bool has_wgmma(const CudaStream& stream) {
  return stream.facts().compute_capability == 90;
}

CUtensorMap map_of(const float* data, int64_t rows, int64_t columns) {
  return tensor_map({data, rows, columns, columns}, Shape::kStep, TensorElements::kRoundedToTf32);
}

/// `blocks` for each head.
template <class Args>
void launch_wgmma(CudaStream& stream, void (*kernel)(Args), const Args& args, int blocks,
                  int shared_bytes) {
  allow_shared(kernel, shared_bytes);
  kernel<<<static_cast<unsigned>(args.heads.count * blocks), Shape::kThreads, shared_bytes,
           stream.handle()>>>(args);
  check_cuda(cudaGetLastError(), "launching attention");
}

}  // namespace

bool wgmma_serves(const CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  return has_wgmma(stream) && wgmma_takes(args.shape) &&
         all_aligned16(args.out.data(), args.qkv.data());
}

bool wgmma_serves(const CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  return has_wgmma(stream) && wgmma_takes(args.shape) &&
         all_aligned16(args.dqkv.data(), args.delta.data(), args.dout.data(), args.lse.data(),
                       args.out.data(), args.qkv.data());
}

void wgmma_forward(CudaStream& stream, const AttentionForward<CudaDevice>& args) {
  const AttentionShape& shape = args.shape;
  const Heads heads = heads_of(shape, args.out.data(), args.qkv.data());
  float* const transposed = stream.scratch<float>(wgmma_forward_scratch_elements(shape)).data();
  transpose_heads(stream, {.heads = heads,
                           .to = transposed,
                           .from = {{args.qkv.data() + 2 * heads.channels(), true}},
                           .count = 1});
  launch_wgmma(stream, &wgmma_forward_kernel,
               {.qkv = map_of(args.qkv.data(), shape.batch * shape.time, heads.packed_stride()),
                .transposed = map_of(transposed, heads.count * kWgmmaHeadDim, shape.time),
                .heads = heads,
                .scale = score_scale(shape.head_dim),
                .out = args.out.data(),
                .lse = args.lse.data()},
               heads.time / Shape::kOwn, Shape::kRingBytes);
}

void wgmma_backward(CudaStream& stream, const AttentionBackward<CudaDevice>& args) {
  const AttentionShape& shape = args.shape;
  const Heads heads = heads_of(shape, args.dqkv.data(), args.dout.data(), args.qkv.data());
  float* const transposed = stream.scratch<float>(wgmma_backward_scratch_elements(shape)).data();
  TransposedHeads copies = {.heads = heads,
                            .to = transposed,
                            .count = kTransposedMatrices,
                            .out = args.out.data(),
                            .delta = args.delta.data()};
  copies.from[kTransposedQ] = {args.qkv.data(), true};
  copies.from[kTransposedK] = {args.qkv.data() + heads.channels(), true};
  copies.from[kTransposedDout] = {args.dout.data(), false};
  static_assert(kTransposedDout == kTransposedMatrices - 1, "delta is of the last matrix");
  transpose_heads(stream, copies);
  const int64_t tokens = shape.batch * shape.time;
  launch_wgmma(stream, &wgmma_backward_kernel,
               {.qkv = map_of(args.qkv.data(), tokens, heads.packed_stride()),
                .dout = map_of(args.dout.data(), tokens, heads.stride()),
                .transposed = map_of(transposed, kTransposedMatrices * heads.count * kWgmmaHeadDim,
                                     shape.time),
                .heads = heads,
                .scale = score_scale(shape.head_dim),
                .dqkv = args.dqkv.data(),
                .delta = args.delta.data(),
                .lse = args.lse.data()},
               2 * heads.time / Shape::kOwn, BackwardRing::kSharedBytes);
}

}  // namespace lockstep::cuda
