#pragma once

// Attention by tiles with an online softmax (Dao et al., 2022). A block has some queries of one
// head, whole rows to each warp, and walks the keys up to its last query; two tiles of k and v are
// in shared memory, one being read while the next arrives.

#include <cuda_runtime.h>

#include <cmath>

#include "kernels/cuda/attention/attention_products.cuh"
#include "kernels/cuda/attention/head_tile.cuh"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/key_ring.cuh"
#include "kernels/cuda/attention/online_softmax.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"
#include "kernels/cuda/ptx/exp2.cuh"

namespace lockstep::cuda {

/// What a block and a warp of forward take on.
template <AttentionProducts Products_, int kWarps_, int kResident_>
struct ForwardShape {
  using Products = Products_;
  static constexpr int kWarps = kWarps_;
  static constexpr int kThreads = 32 * kWarps_;
  static constexpr int kResident = kResident_;  ///< blocks that must fit a multiprocessor
  static constexpr int kQueries = kWarps_ * Products::kTileRows;
  static constexpr int kKeys = Products::kTileColumns;
  using Ring = KeyRing<Products, kThreads>;
  static constexpr int kSharedBytes =
      4 * (kQueries * Products::kHeadDim + Ring::kFloats + kWarps_ * Products::kScratchFloats);
};

struct FlashForward {
  Heads heads;
  float scale;
  float* out;
  float* lse;
  const float* qkv;
};

/// Writes a warp's rows, whose first is `first_query`.
template <class Products>
__device__ void store_out_and_lse(const FlashForward& args, typename Products::Sums& sums,
                                  const OnlineSoftmax<Products>& softmax, int head,
                                  int first_query) {
  const Heads& heads = args.heads;
#pragma unroll
  for (int i = 0; i < Products::kRows; ++i) {
    const int query = first_query + Products::row(i);
    if (query < heads.time) {
      Products::scale_row(sums, i, 1.0F / softmax.sum[i]);
      store_row<Products>(sums, i, args.out + heads.offset(head) + query * heads.stride(), heads);
      if (Products::first_of_row()) {
        args.lse[static_cast<int64_t>(head) * heads.time + query] =
            softmax.max[i] * args.scale + logf(softmax.sum[i]);
      }
    }
  }
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kResident)
    flash_forward_kernel(FlashForward args) {
  using Products = typename Shape::Products;
  using Key = typename Products::Key;
  constexpr int kHeadDim = Products::kHeadDim;
  constexpr int kKeys = Shape::kKeys;
  extern __shared__ __align__(128) float shared[];
  float* const q_tile = shared;
  float* const ring_memory = q_tile + Shape::kQueries * kHeadDim;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* const scratch = ring_memory + Shape::Ring::kFloats + warp * Products::kScratchFloats;

  const Heads& heads = args.heads;
  const int head = static_cast<int>(blockIdx.x);
  // The longest rows first: what starts last is then short.
  const int q0 = static_cast<int>(gridDim.y - 1 - blockIdx.y) * Shape::kQueries;
  const int first_query = q0 + warp * Products::kTileRows;
  const int64_t stride = heads.packed_stride();
  const float* q = args.qkv + heads.packed_offset(head);
  const int keys = min(q0 + Shape::kQueries, heads.time);

  const HeadTile<Key, kHeadDim, Shape::kQueries, Shape::kThreads> query_tile(heads, stride);
  const typename Shape::Ring ring(ring_memory, heads, stride, q);
  query_tile.fill(q_tile, q + q0 * stride, heads.time - q0);
  commit_copies();
  ring.fill(0, 0);
  commit_copies();
  wait_copies<1>();
  __syncthreads();
  const typename Products::Left left(q_tile + warp * Products::kTileRows * kHeadDim);

  const float scale2 = args.scale * kLog2E;
  OnlineSoftmax<Products> softmax;
  typename Products::Sums sums = {};
  int slot = 0;
  for (int key = 0; key < keys; key += kKeys) {
    wait_copies<0>();
    __syncthreads();
    if (key + kKeys < keys) {
      ring.fill(slot ^ 1, key + kKeys);
      commit_copies();
    }
    if (key < first_query + Products::kTileRows) {
      typename Products::Scores s;
      Products::scores(s, left, ring.keys(slot));
      if (key + kKeys > first_query + 1) {
        mask<Products>(s, [&](int row, int column) { return key + column > first_query + row; });
      }
      softmax.take(s, scale2, sums);
      Products::accumulate(sums, s, ring.values(slot), scratch);
    }
    slot ^= 1;
  }

  softmax.reduce_sums();
  store_out_and_lse<Products>(args, sums, softmax, head, first_query);
}

}  // namespace lockstep::cuda
