#pragma once

// The queries that a block of keys walks: of each two tiles in shared memory, one read while the
// next arrives.

#include "kernels/cuda/attention/flash_backward_shape.cuh"
#include "kernels/cuda/attention/head_tile.cuh"
#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/ptx/async_copy.cuh"

namespace lockstep::cuda {

/// Two slots, each of kOthers queries with their dout, lse and delta.
template <class Shape>
class QueryRing {
 public:
  static constexpr int kQueries = Shape::kOthers;
  static constexpr int kFloats = 4 * Shape::kTileFloats;

  /// `tiles` and `rows`: kFloats and Shape::kRowFloats in shared memory. `q`: the head's first
  /// query in (B, T, 3 C); `stride`: floats between neighbouring positions there.
  __device__ QueryRing(float* tiles, float* rows, const FlashBackward& args, int head,
                       int64_t stride, const float* q)
      : tiles_(tiles),
        rows_(rows),
        args_(args),
        stride_(stride),
        q_(q),
        dout_(args.dout + args.heads.offset(head)),
        row0_(static_cast<int64_t>(head) * args.heads.time),
        query_tile_(args.heads, stride),
        dout_tile_(args.heads, args.heads.stride()) {}

  /// Starts the block's copies of the queries from `query` on. Behind the last query there are
  /// zeros: neither they nor what is done with them matters.
  __device__ void fill(int slot, int query) const {
    const Heads& heads = args_.heads;
    float* to = tiles_ + slot * 2 * Shape::kTileFloats;
    query_tile_.fill(to, q_ + query * stride_, heads.time - query);
    dout_tile_.fill(to + Shape::kTileFloats, dout_ + query * heads.stride(), heads.time - query);
    for (int i = static_cast<int>(threadIdx.x); i < 2 * kQueries; i += Shape::kThreads) {
      const int position = query + i % kQueries;
      const float* from = i < kQueries ? args_.lse : args_.delta;
      copy4_async(shared_address(rows_ + slot * 2 * kQueries + i), from + row0_ + position,
                  position < heads.time ? 4 : 0);
    }
  }
  __device__ const float* queries(int slot) const { return tiles_ + slot * 2 * Shape::kTileFloats; }
  __device__ const float* douts(int slot) const { return queries(slot) + Shape::kTileFloats; }
  __device__ const float* lse(int slot) const { return rows_ + slot * 2 * kQueries; }
  __device__ const float* delta(int slot) const { return lse(slot) + kQueries; }

 private:
  using Products = typename Shape::Products;
  using Tile = HeadTile<typename Products::Key, Products::kHeadDim, kQueries, Shape::kThreads>;

  float* tiles_;
  float* rows_;
  const FlashBackward& args_;
  int64_t stride_;
  const float* q_;
  const float* dout_;
  int64_t row0_;
  Tile query_tile_;
  Tile dout_tile_;
};

}  // namespace lockstep::cuda
