#pragma once

// The keys and values that a block of queries walks: two tiles of each in shared memory, one read
// while the next arrives.

#include "kernels/cuda/attention/attention_products.cuh"
#include "kernels/cuda/attention/head_tile.cuh"
#include "kernels/cuda/attention/heads.cuh"

namespace lockstep::cuda {

/// Two slots, each of kTileColumns keys and their values.
template <AttentionProducts Products, int kThreads>
class KeyRing {
 public:
  static constexpr int kKeys = Products::kTileColumns;
  static constexpr int kTileFloats = kKeys * Products::kHeadDim;
  static constexpr int kFloats = 4 * kTileFloats;

  /// `memory`: kFloats in shared memory; `q`: the head's first query in (B, T, 3 C); `stride`:
  /// floats between neighbouring positions there.
  __device__ KeyRing(float* memory, const Heads& heads, int64_t stride, const float* q)
      : memory_(memory),
        heads_(heads),
        stride_(stride),
        k_(q + heads.channels()),
        v_(k_ + heads.channels()),
        tile_(heads, stride) {}

  /// Starts the block's copies of the keys from `key` on and their values.
  __device__ void fill(int slot, int key) const {
    float* to = memory_ + slot * 2 * kTileFloats;
    tile_.fill(to, k_ + key * stride_, heads_.time - key);
    tile_.fill(to + kTileFloats, v_ + key * stride_, heads_.time - key);
  }
  __device__ const float* keys(int slot) const { return memory_ + slot * 2 * kTileFloats; }
  __device__ const float* values(int slot) const { return keys(slot) + kTileFloats; }

 private:
  float* memory_;
  const Heads& heads_;
  int64_t stride_;
  const float* k_;
  const float* v_;
  HeadTile<typename Products::Key, Products::kHeadDim, kKeys, kThreads> tile_;
};

}  // namespace lockstep::cuda
