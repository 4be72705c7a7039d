#include "kernels/layout/access_table.h"

#include <algorithm>
#include <array>
#include <functional>

#include "kernels/layout/bank_conflicts.h"
#include "kernels/layout/boxed_tile.h"
#include "kernels/layout/thread_map.h"
#include "kernels/layout/tile_shape.h"

namespace lockstep::layout {
namespace {

using OffsetOf = std::function<int(int lane)>;

int passes_of(int width, const OffsetOf& offset) {
  std::array<int, 32> offsets{};
  for (int lane = 0; lane < 32; ++lane) {
    offsets[static_cast<size_t>(lane)] = offset(lane);
  }
  return bank_passes(offsets, width);
}

// --- Rung 10: through registers into fragment order -------------------------------------------

constexpr int kTile = FragmentTile::kExtent;
constexpr int kDepth = FragmentTile::kDepth;
constexpr int kThreads = FragmentTile::kThreads;

template <Major kWalked, Major kKeyed, Role kRole>
int fragment_stores() {
  int worst = 0;
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    for (int i = 0; i < kTile * kDepth / 4 / kThreads; ++i) {
      for (int j = 0; j < 4; ++j) {
        worst = std::max(
            worst, passes_of(1, [&](int lane) {
              const Place at =
                  register_share<kWalked, kTile, kDepth, kThreads>(warp * 32 + lane, i);
              const int along = kWalked == Major::kMN ? j : 0;
              return fragment_offset<kKeyed, kRole, kTile>(at.extent + along, at.depth + j - along);
            }));
      }
    }
  }
  return worst;
}

template <Major kMajor>
int fragment_loads() {
  int worst = 0;
  for (int block = 0; block < kTile / 16; ++block) {
    worst = std::max(worst, passes_of(4, [&](int lane) {
                       return (lane ^ fragment_key<kMajor>(block, lane)) * 4;
                     }));
  }
  return worst;
}

template <Major kMajor, Role kRole>
void add_fragment_order(std::vector<Access>& table) {
  table.push_back({10, kRole, kMajor, "store 4 B", fragment_stores<kMajor, kMajor, kRole>()});
  table.push_back({10, kRole, kMajor, "load 16 B", fragment_loads<kMajor>()});
}

// --- Rungs 11 and 13: 16-byte copies into swizzled rows, ldmatrix or 16-byte loads --------------

template <Major kMajor, int kExtent, int kStage, int kGroup>
int staged_stores() {
  constexpr int row_chunks = (kMajor == Major::kK ? kStage : kExtent) / 4;
  int worst = 0;
  for (int copy = 0; copy < kExtent * kStage / 4; copy += 32) {
    worst = std::max(worst, passes_of(4, [&](int lane) {
                       return staged_chunk<kMajor, kExtent, kStage, kGroup>(
                           (copy + lane) / row_chunks, (copy + lane) % row_chunks);
                     }));
  }
  return worst;
}

template <Role kRole, Major kMajor, int kExtent, int kStage, int kGroup>
int staged_loads() {
  int worst = 0;
  for (int e0 = 0; e0 < kExtent; e0 += 8 * kGroup) {
    for (int k0 = 0; k0 < kStage; k0 += 8) {
      for (int i = 0; i < kGroup; i += kMajor == Major::kK ? 2 : 4) {
        for (int half = 0; half < 2; ++half) {
          worst =
              std::max(worst, passes_of(4, [&](int lane) {
                         if constexpr (kMajor == Major::kK) {
                           return matrix_row_offset<kStage>(
                               matrix_row_origin<kRole, kExtent, kStage, kGroup>(lane, e0), k0, i);
                         } else {
                           return group_offset<kExtent>(
                               group_origin<kExtent, kStage, kGroup>(lane, e0), k0, half, i);
                         }
                       }));
        }
      }
    }
  }
  return worst;
}

template <class Shape, Major kMajor, Role kRole>
void add_multistage_mma(int rung, std::vector<Access>& table) {
  constexpr int extent = kRole == Role::kA ? Shape::kBlockM : Shape::kBlockN;
  constexpr int group = (kRole == Role::kA ? Shape::kWarpM : Shape::kWarpN) / 8;
  constexpr int stage = Shape::kDepth;
  table.push_back(
      {rung, kRole, kMajor, "store 16 B", staged_stores<kMajor, extent, stage, group>()});
  table.push_back({rung, kRole, kMajor, kMajor == Major::kK ? "ldmatrix" : "load 16 B",
                   staged_loads<kRole, kMajor, extent, stage, group>()});
}

// --- Rung 12: always [k][extent] --------------------------------------------------------------

template <int kPitch>
int transposing_stores(int block_threads) {
  int worst = 0;
  for (int warp = 0; warp < block_threads / 32; ++warp) {
    worst = std::max(worst, passes_of(1, [&](int lane) {
                       const Place at = transposing_share(warp * 32 + lane);
                       return outer_product_offset<kPitch>(at.extent, at.depth);
                     }));
  }
  return worst;
}

template <int kExtent, int kPitch>
int row_stores(int stage) {
  int worst = 0;
  for (int copy = 0; copy < kExtent * stage / 4; copy += 32) {
    worst = std::max(worst, passes_of(4, [&](int lane) {
                       const int chunk = copy + lane;
                       return outer_product_offset<kPitch>(chunk % (kExtent / 4) * 4,
                                                           chunk / (kExtent / 4));
                     }));
  }
  return worst;
}

template <Major kMajor, Role kRole>
void add_multistage_simt(std::vector<Access>& table) {
  using Shape = SimtTile128x128;
  using Lanes = LaneGrid<Shape::kWarpM, Shape::kWarpN>;
  constexpr bool is_a = kRole == Role::kA;
  constexpr int extent = is_a ? Shape::kBlockM : Shape::kBlockN;
  constexpr int pitch = extent + Shape::kPad;
  table.push_back({12, kRole, kMajor, kMajor == Major::kK ? "store 4 B" : "store 16 B",
                   kMajor == Major::kK ? transposing_stores<pitch>(Shape::kThreads)
                                       : row_stores<extent, pitch>(Shape::kDepth)});
  int loads = 0;
  for (int k = 0; k < Shape::kDepth; ++k) {
    for (int e0 = 0; e0 < extent; e0 += is_a ? Lanes::kPitchM : Lanes::kPitchN) {
      loads = std::max(loads, passes_of(4, [&](int lane) {
                         const int at = e0 + (is_a ? Lanes::row(lane) : Lanes::column(lane));
                         return outer_product_offset<pitch>(at, k);
                       }));
    }
  }
  table.push_back({12, kRole, kMajor, "load 16 B", loads});
}

// --- Rung 14: filled by the tensor memory accelerator -----------------------------------------

template <Side kSide, Major kMajor>
int boxed_loads(int extent) {
  constexpr bool left = kSide == Side::kA;
  constexpr int loads = kMajor == Major::kK || left ? 4 : 8;
  int worst = 0;
  for (int e0 = 0; e0 < extent; e0 += 64) {
    for (int k0 = 0; k0 < kWarpgroupDepth; k0 += 8) {
      for (int i = 0; i < loads; ++i) {
        for (int half = 0; half < 2; ++half) {
          if constexpr (kMajor == Major::kK) {
            worst = std::max(worst, passes_of(4, [&](int lane) {
                               return boxed_matrix_offset(boxed_matrix_origin<kSide>(lane, e0), k0,
                                                          2 * i);
                             }));
          } else if constexpr (left) {
            worst = std::max(worst, passes_of(2, [&](int lane) {
                               return boxed_pair_offset(boxed_pair_origin(lane, e0), k0, half, i);
                             }));
          } else {
            worst =
                std::max(worst, passes_of(1, [&](int lane) {
                           return boxed_single_offset(boxed_single_origin(lane, e0), k0, half, i);
                         }));
          }
        }
      }
    }
  }
  return worst;
}

template <Major kMajor, Role kRole>
void add_boxed(std::vector<Access>& table) {
  constexpr int extent =
      kRole == Role::kA ? TmaMmaTile256x128::kBlockM : TmaMmaTile256x128::kBlockN;
  const int left = boxed_loads<Side::kA, kMajor>(extent);
  const int right = boxed_loads<Side::kB, kMajor>(extent);
  if constexpr (kMajor == Major::kK) {
    table.push_back({14, kRole, kMajor, "ldmatrix", std::max(left, right)});
  } else {
    table.push_back({14, kRole, kMajor, "load 8 B", left});
    if (kRole == Role::kB) {  // an MN-major A is always on the left
      table.push_back({14, kRole, kMajor, "load 4 B", right});
    }
  }
}

template <Major kMajor, Role kRole>
void add_all(std::vector<Access>& table) {
  add_fragment_order<kMajor, kRole>(table);
  add_multistage_mma<MmaTile256x128, kMajor, kRole>(11, table);
  add_multistage_simt<kMajor, kRole>(table);
  add_multistage_mma<SplitMmaTile128x128, kMajor, kRole>(13, table);
  add_boxed<kMajor, kRole>(table);
}

template <Role kRole>
int stores_of(Major walked, Major keyed) {
  using enum Major;
  if (walked == kK) {
    return keyed == kK ? fragment_stores<kK, kK, kRole>() : fragment_stores<kK, kMN, kRole>();
  }
  return keyed == kK ? fragment_stores<kMN, kK, kRole>() : fragment_stores<kMN, kMN, kRole>();
}

}  // namespace

std::vector<Access> access_table() {
  std::vector<Access> table;
  add_all<Major::kK, Role::kA>(table);
  add_all<Major::kMN, Role::kA>(table);
  add_all<Major::kK, Role::kB>(table);
  add_all<Major::kMN, Role::kB>(table);
  std::stable_sort(table.begin(), table.end(),
                   [](const Access& x, const Access& y) { return x.rung < y.rung; });
  return table;
}

int fragment_store_passes(Role role, Major walked, Major keyed) {
  return role == Role::kA ? stores_of<Role::kA>(walked, keyed) : stores_of<Role::kB>(walked, keyed);
}

}  // namespace lockstep::layout
