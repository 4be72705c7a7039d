#pragma once

// What attention's backward by wgmma reads, and the thread that has the tensor memory accelerator
// bring it. A step along the side that a block walks takes two stages of the ring: what scores are
// made from, then what they multiply.

#include "kernels/cuda/attention/tile_ring.cuh"
#include "kernels/cuda/ptx/bulk_copy.cuh"

namespace lockstep::cuda {

/// What backward reads transposed.
enum Transposed : int { kTransposedQ, kTransposedK, kTransposedDout, kTransposedMatrices };

struct WgmmaBackward {
  CUtensorMap qkv;         ///< (B T, 3 C), boxes of 64 rows x 32
  CUtensorMap dout;        ///< (B T, C)
  CUtensorMap transposed;  ///< (kTransposedMatrices * heads * 64, T)
  Heads heads;
  float scale;
  float* dqkv;
  const float* delta;
  const float* lse;
};

/// The ring, and what of lse and delta belongs to its stages.
struct BackwardRing {
  static constexpr int kRowFloats = 2 * WgmmaAttentionShape::kStep;
  static constexpr int kSharedBytes =
      WgmmaAttentionShape::kRingBytes + TileStages::kStages * kRowFloats * 4;

  TilePipeline tiles;
  const float* rows;

  __device__ BackwardRing(const float* shared, uint32_t barriers)
      : tiles{shared_address(shared), barriers},
        rows(shared + WgmmaAttentionShape::kRingBytes / 4) {}

  /// lse of a stage's queries, then delta.
  __device__ const float* rows_of(int stage) const { return rows + stage * kRowFloats; }
};

/// Brings what blocks keep, in one stage for each warpgroup, and what they walk. One thread's.
class BackwardSupplier {
 public:
  using Shape = WgmmaAttentionShape;

  __device__ BackwardSupplier(const WgmmaBackward& args, const BackwardRing& ring, int head)
      : args_(args), ring_(ring), supplier_{ring.tiles}, place_(args.heads, head), head_(head) {}

  /// For a block of queries.
  __device__ void supply_dq(int tile) {
    const int q0 = tile * Shape::kOwn;
    bring_queries(q0);
    bring_queries(q0 + Shape::kStep);
    for (int key = 0; key < q0 + Shape::kOwn; key += Shape::kStep) {
      bring_keys(key);
      const uint32_t full = supplier_.begin(Shape::kTileBytes);
      copy_tile(supplier_.a_tile(), &args_.transposed, key, transposed_row(kTransposedK), full);
      supplier_.end();
    }
  }

  /// For a block of keys.
  __device__ void supply_dkv(int tile) {
    const int k0 = tile * Shape::kOwn;
    bring_keys(k0);
    bring_keys(k0 + Shape::kStep);
    for (int query = k0; query < args_.heads.time; query += Shape::kStep) {
      bring_queries(query);
      bring_transposed_queries(query);
    }
  }

 private:
  __device__ void bring_queries(int query) {
    const uint32_t full = supplier_.begin(2 * Shape::kTileBytes);
    copy_tile(supplier_.a_tile(), &args_.qkv, place_.column, place_.row + query, full);
    copy_tile(supplier_.b_tile(), &args_.dout, place_.column, place_.row + query, full);
    supplier_.end();
  }
  __device__ void bring_keys(int key) {
    const int column = place_.column + place_.channels;
    const uint32_t full = supplier_.begin(2 * Shape::kTileBytes);
    copy_tile(supplier_.a_tile(), &args_.qkv, column, place_.row + key, full);
    copy_tile(supplier_.b_tile(), &args_.qkv, column + place_.channels, place_.row + key, full);
    supplier_.end();
  }
  /// And their lse and delta.
  __device__ void bring_transposed_queries(int query) {
    const uint32_t full = supplier_.begin(2 * Shape::kTileBytes + BackwardRing::kRowFloats * 4);
    copy_tile(supplier_.a_tile(), &args_.transposed, query, transposed_row(kTransposedDout), full);
    copy_tile(supplier_.b_tile(), &args_.transposed, query, transposed_row(kTransposedQ), full);
    const uint32_t rows = shared_address(ring_.rows_of(supplier_.at.stage));
    const int64_t row = static_cast<int64_t>(head_) * args_.heads.time + query;
    copy_run(rows, args_.lse + row, Shape::kStep * 4, full);
    copy_run(rows + Shape::kStep * 4, args_.delta + row, Shape::kStep * 4, full);
    supplier_.end();
  }
  __device__ int transposed_row(Transposed which) const {
    return which * args_.heads.count * kWgmmaHeadDim + place_.transposed;
  }

  const WgmmaBackward& args_;
  const BackwardRing& ring_;
  TileSupplier supplier_;
  HeadPlace place_;
  int head_;
};

}  // namespace lockstep::cuda
