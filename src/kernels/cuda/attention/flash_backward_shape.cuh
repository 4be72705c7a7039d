#pragma once

// What both halves of flash backward share (flash_backward.cuh).

#include "kernels/cuda/attention/attention_products.cuh"
#include "kernels/cuda/attention/heads.cuh"

namespace lockstep::cuda {

/// What a block and a warp of either half take on: kOwn rows of two matrices that it keeps,
/// kOthers rows of two more at a time.
template <AttentionProducts Products_, int kWarps_, int kResident_>
struct BackwardShape {
  using Products = Products_;
  static constexpr int kWarps = kWarps_;
  static constexpr int kThreads = 32 * kWarps_;
  static constexpr int kResident = kResident_;
  static constexpr int kOwn = kWarps_ * Products::kTileRows;
  static constexpr int kOthers = Products::kTileColumns;
  static constexpr int kOwnFloats = kOwn * Products::kHeadDim;
  static constexpr int kTileFloats = kOthers * Products::kHeadDim;
  static constexpr int kRowFloats = 4 * kOthers;  ///< lse and delta of two tiles of queries
  static constexpr int kSharedBytes =
      4 * (2 * kOwnFloats + 4 * kTileFloats + kWarps_ * Products::kScratchFloats + kRowFloats);
};

struct FlashBackward {
  Heads heads;
  float scale;
  float* dqkv;
  const float* delta;
  const float* dout;
  const float* lse;
  const float* qkv;
};

}  // namespace lockstep::cuda
