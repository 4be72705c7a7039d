#pragma once

// The shapes of the multi-stage kernels' work, known to the kernels and to what checks their
// layouts on the host.

#include "kernels/layout/warpgroup.h"

namespace lockstep::layout {

/// What a block, a stage and a warp of a multi-stage product take on.
template <int kBlockM_, int kBlockN_, int kDepth_, int kStages_, int kWarpsM_, int kWarpsN_,
          int kResident_, int kPad_ = 0>
struct TileShape {
  static constexpr int kBlockM = kBlockM_;
  static constexpr int kBlockN = kBlockN_;
  static constexpr int kDepth = kDepth_;  ///< k per stage
  static constexpr int kStages = kStages_;
  static constexpr int kWarpsN = kWarpsN_;
  static constexpr int kThreads = kWarpsM_ * kWarpsN_ * 32;
  static constexpr int kWarpM = kBlockM_ / kWarpsM_;
  static constexpr int kWarpN = kBlockN_ / kWarpsN_;
  static constexpr int kPad = kPad_;  ///< floats behind each row of a [k][extent] tile
  static constexpr int kStageFloats = (kBlockM_ + kBlockN_ + 2 * kPad_) * kDepth_;
  static constexpr int kSharedBytes = kStages_ * kStageFloats * 4;
  static constexpr int kResident = kResident_;  ///< blocks that must fit a multiprocessor
};

/// Rung 10: the tile of each operand that is stored in fragment order, and the block that fills it.
struct FragmentTile {
  static constexpr int kExtent = 128;
  static constexpr int kDepth = 16;
  static constexpr int kThreads = 256;
};

/// Rung 11 and the model's large tile: 64 x 64 warp tiles, since the bytes read from shared memory
/// per product fall with both sides of the tile. Rung 11's block copies a quarter less than two of
/// the model's. The smaller ones are for grids that large tiles would not fill the machine with.
using MmaTile256x128 = TileShape<256, 128, 32, 4, 4, 2, 1>;
using MmaTile128x128 = TileShape<128, 128, 32, 3, 2, 2, 2>;
using MmaTile128x64 = TileShape<128, 64, 32, 3, 2, 2, 3>;
using MmaTile64x64 = TileShape<64, 64, 32, 3, 2, 2, 4>;

/// Rung 13: 64 x 32 warp tiles leave registers for factors in two parts.
using SplitMmaTile128x128 = TileShape<128, 128, 32, 4, 2, 4, 1>;

/// Rung 14: rung 11's tile, in a ring of stages that the tensor memory accelerator fills.
struct TmaMmaTile256x128 : MmaTile256x128 {
  static constexpr bool kSplit = false;
  static constexpr int kReadingWarps = kThreads / 32;
};

/// Tiles for wgmma, where there is no second operand of a warp: two warpgroups of 64 rows each. As
/// many stages as fit, since all that hides the latency of memory is how many are on their way.
template <int kBlockN_, int kStages_, int kResident_, bool kSplit_>
struct WgmmaTile {
  static constexpr int kBlockM = 128;
  static constexpr int kBlockN = kBlockN_;
  static constexpr int kStages = kStages_;
  static constexpr int kResident = kResident_;
  static constexpr bool kSplit = kSplit_;
  static constexpr int kReadingWarps = kMultiplyingWarps;  ///< of a stage
  /// A split shape keeps b's tiles twice.
  static constexpr int kStageFloats = (kBlockM + (kSplit ? 2 : 1) * kBlockN) * kWarpgroupDepth;
  static constexpr int kSharedBytes = kStages * kStageFloats * 4;
  static_assert(kMultiplyingWarps * warp_sums_floats(kBlockN) * 4 <= kSharedBytes,
                "the warps' sums pass through the tiles' memory");
};
template <int kBlockN, int kStages, int kResident>
using RoundedTile = WgmmaTile<kBlockN, kStages, kResident, false>;
template <int kBlockN, int kStages>
using SplitTile = WgmmaTile<kBlockN, kStages, 1, true>;
using WgmmaTile128x256 = RoundedTile<256, 4, 1>;
using WgmmaTile128x192 = RoundedTile<192, 5, 1>;
using WgmmaTile128x128 = RoundedTile<128, 6, 1>;
using WgmmaTile128x96 = RoundedTile<96, 3, 2>;
using WgmmaTile128x64 = RoundedTile<64, 4, 2>;
using SplitTile128x128 = SplitTile<128, 4>;
using SplitTile128x96 = SplitTile<96, 5>;

/// Tiles of one warpgroup each, two of which take turns; sums pass through memory of their own,
/// kSumColumns at a time.
template <int kBlockN_, int kStages_, int kSumColumns_>
struct PingPongTile {
  static constexpr int kBlockM = 64;
  static constexpr int kBlockN = kBlockN_;
  static constexpr int kStages = kStages_;
  static constexpr bool kSplit = false;
  static constexpr int kResident = 1;
  static constexpr int kReadingWarps = kMultiplyingWarps / 2;
  static constexpr int kStageFloats = (kBlockM + kBlockN) * kWarpgroupDepth;
  static constexpr int kSumColumns = kSumColumns_;
  static constexpr int kSharedBytes =
      (kStages * kStageFloats + kMultiplyingWarps * warp_sums_floats(kSumColumns)) * 4;
};
using PingPongTile64x256 = PingPongTile<256, 4, 64>;
using PingPongTile64x192 = PingPongTile<192, 6, 32>;

/// Rung 12 and the model's large tile in fp32: 8 x 16 elements a thread, 64 x 64 a warp. The others
/// have 8 x 8 a thread, 32 x 64 a warp.
using SimtTile128x128 = TileShape<128, 128, 8, 5, 2, 2, 2, 4>;
using SimtTile128x64 = TileShape<128, 64, 8, 5, 4, 1, 4, 4>;
using SimtTile64x64 = TileShape<64, 64, 8, 5, 2, 1, 8, 4>;

}  // namespace lockstep::layout
