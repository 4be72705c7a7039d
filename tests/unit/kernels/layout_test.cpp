// The index maps of the GPU kernels, proven on the host.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/layout/access_table.h"
#include "kernels/layout/bank_conflicts.h"
#include "kernels/layout/boxed_tile.h"
#include "kernels/layout/mma_fragment.h"
#include "kernels/layout/swizzle.h"
#include "kernels/layout/thread_map.h"
#include "kernels/layout/warpgroup.h"

namespace lockstep::layout {
namespace {

// Every element of a rows x columns matrix belongs to exactly one (lane, register).
template <class Map>
void expect_fragment_bijection(Map map, int registers, int rows, int columns) {
  std::set<std::tuple<int, int>> seen;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < registers; ++i) {
      const Coordinate at = map(lane, i);
      EXPECT_TRUE(at.row >= 0 && at.row < rows && at.column >= 0 && at.column < columns);
      EXPECT_TRUE(seen.emplace(at.row, at.column).second) << at.row << ", " << at.column;
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), rows * columns);
}

TEST(MmaFragment, EveryElementHasOneRegister) {
  expect_fragment_bijection(mma_a, 4, kMmaM, kMmaK);
  expect_fragment_bijection(mma_b, 2, kMmaK, kMmaN);
  expect_fragment_bijection(mma_c, 4, kMmaM, kMmaN);
}

// Shared memory of a tile, each float naming the element that lies there.
template <class OffsetOf>
std::vector<int> staged(int extent, int depth, OffsetOf offset_of) {
  std::vector<int> memory(static_cast<size_t>(extent * depth), -1);
  for (int e = 0; e < extent; ++e) {
    for (int d = 0; d < depth; ++d) {
      const auto at = static_cast<size_t>(offset_of(e, d));
      EXPECT_LT(at, memory.size());
      EXPECT_EQ(memory[at], -1) << "two elements at " << at;
      memory[at] = e * depth + d;
    }
  }
  return memory;
}

// What a lane's registers must hold for mma: (group index i, half of k) at (group g + i, t + 4
// half), which is row g or g + 8 of A's fragment for even and odd i, and column g of B's.
template <int kGroup>
int demanded(int lane, int e0, int k0, int i, int half, int depth) {
  const Coordinate a = mma_a(lane, i % 2 + 2 * half);
  const Coordinate b = mma_b(lane, half);
  EXPECT_EQ(a.column, b.row);
  EXPECT_EQ(a.row, b.column + 8 * (i % 2));
  return (e0 + kGroup * (a.row % 8) + i) * depth + k0 + a.column;
}

template <Role kRole, int kExtent, int kDepth, int kGroup>
void expect_matrix_loads_fit() {
  const std::vector<int> memory = staged(kExtent, kDepth, [](int e, int d) {
    return staged_offset<Major::kK, kExtent, kDepth, kGroup>(e, d);
  });
  for (int e0 = 0; e0 < kExtent; e0 += 8 * kGroup) {
    for (int k0 = 0; k0 < kDepth; k0 += 8) {
      for (int i = 0; i < kGroup; i += 2) {
        for (int lane = 0; lane < 32; ++lane) {
          // Register r receives element t of row g of matrix r; lane 8 r + g named that row.
          for (int r = 0; r < 4; ++r) {
            const int named = 8 * r + lane / 4;
            const Place at = matrix_place<kRole>(r);
            const int origin = matrix_row_origin<kRole, kExtent, kDepth, kGroup>(named, e0);
            const int offset = matrix_row_offset<kDepth>(origin, k0, i);
            EXPECT_EQ(offset % 4, 0);
            EXPECT_EQ(memory[static_cast<size_t>(offset + lane % 4)],
                      demanded<kGroup>(lane, e0, k0, i + at.extent, at.depth, kDepth));
          }
        }
      }
    }
  }
}

template <int kExtent, int kDepth, int kGroup>
void expect_group_loads_fit() {
  const std::vector<int> memory = staged(kExtent, kDepth, [](int e, int d) {
    return staged_offset<Major::kMN, kExtent, kDepth, kGroup>(e, d);
  });
  for (int e0 = 0; e0 < kExtent; e0 += 8 * kGroup) {
    for (int k0 = 0; k0 < kDepth; k0 += 8) {
      for (int i = 0; i < kGroup; ++i) {
        for (int lane = 0; lane < 32; ++lane) {
          for (int half = 0; half < 2; ++half) {
            const int origin = group_origin<kExtent, kDepth, kGroup>(lane, e0);
            const int offset = group_offset<kExtent>(origin, k0, half, i / 4 * 4);
            EXPECT_EQ(memory[static_cast<size_t>(offset + i % 4)],
                      demanded<kGroup>(lane, e0, k0, i, half, kDepth));
          }
        }
      }
    }
  }
}

TEST(StagedTile, LoadsPickWhatTheInstructionDemands) {
  expect_matrix_loads_fit<Role::kA, 256, 32, 8>();
  expect_matrix_loads_fit<Role::kA, 128, 32, 8>();
  expect_matrix_loads_fit<Role::kA, 64, 32, 4>();
  expect_matrix_loads_fit<Role::kB, 128, 32, 8>();
  expect_matrix_loads_fit<Role::kB, 64, 32, 4>();
  expect_group_loads_fit<256, 32, 8>();
  expect_group_loads_fit<128, 32, 8>();
  expect_group_loads_fit<64, 32, 4>();
}

// What an instruction's registers must hold: of the left operand's sixteen rows `i`, or the right
// one's eight columns `i`, at k0.
template <Side kSide, Major kMajor>
int boxed_demand(int lane, int e0, int k0, int i, int r) {
  const Coordinate a = mma_a(lane, r);
  const Coordinate b = mma_b(lane, r);
  const int row = kSide == Side::kA ? a.row : b.column;
  const int k = kSide == Side::kA ? a.column : b.row;
  return (e0 + boxed_extent<kSide, kMajor>(i, row)) * kWarpgroupDepth + k0 + k;
}

constexpr int kBoxedExtent = 256;

template <Side kSide>
void expect_boxed_matrices_fit() {
  const std::vector<int> memory = staged(kBoxedExtent, kWarpgroupDepth, [](int row, int k) {
    return swizzled_chunk(row, k / 4) + k % 4;
  });
  for (int e0 = 0; e0 < kBoxedExtent; e0 += 64) {
    for (int k0 = 0; k0 < kWarpgroupDepth; k0 += 8) {
      for (int part = 0; part < 4; ++part) {
        for (int lane = 0; lane < 32; ++lane) {
          // Register r receives element t of row g of matrix r; lane 8 r + g named that row.
          for (int r = 0; r < 4; ++r) {
            const int origin = boxed_matrix_origin<kSide>(8 * r + lane / 4, e0);
            const int at = boxed_matrix_offset(origin, k0, 2 * part) + lane % 4;
            EXPECT_EQ(memory[static_cast<size_t>(at)],
                      kSide == Side::kA ? (boxed_demand<kSide, Major::kK>(lane, e0, k0, part, r))
                                        : (boxed_demand<kSide, Major::kK>(
                                              lane, e0, k0, 2 * part + r / 2, r % 2)));
          }
        }
      }
    }
  }
}

void expect_boxed_panels_fit() {
  const std::vector<int> memory = staged(kBoxedExtent, kWarpgroupDepth, panel_offset);
  const auto element = [&memory](int at) { return memory[static_cast<size_t>(at)]; };
  for (int e0 = 0; e0 < kBoxedExtent; e0 += 64) {
    for (int k0 = 0; k0 < kWarpgroupDepth; k0 += 8) {
      for (int lane = 0; lane < 32; ++lane) {
        for (const int half : {0, 1}) {
          for (int i = 0; i < 4; ++i) {
            const int at = boxed_pair_offset(boxed_pair_origin(lane, e0), k0, half, i);
            EXPECT_EQ(at % 2, 0);
            for (const int r : {0, 1}) {
              EXPECT_EQ(element(at + r),
                        (boxed_demand<Side::kA, Major::kMN>(lane, e0, k0, i, 2 * half + r)));
            }
          }
          for (int j = 0; j < 8; ++j) {
            EXPECT_EQ(element(boxed_single_offset(boxed_single_origin(lane, e0), k0, half, j)),
                      (boxed_demand<Side::kB, Major::kMN>(lane, e0, k0, j, half)));
          }
        }
      }
    }
  }
}

TEST(BoxedTile, LoadsPickWhatTheInstructionDemands) {
  expect_boxed_matrices_fit<Side::kA>();
  expect_boxed_matrices_fit<Side::kB>();
  expect_boxed_panels_fit();
}

template <Side kSide, Major kMajor>
void expect_warp_covers_its_extent() {
  constexpr int kEach = kSide == Side::kA ? 16 : 8;
  std::set<int> seen;
  for (int i = 0; i < 64 / kEach; ++i) {
    for (int row = 0; row < kEach; ++row) {
      const int extent = boxed_extent<kSide, kMajor>(i, row);
      EXPECT_TRUE(extent >= 0 && extent < 64);
      EXPECT_TRUE(seen.insert(extent).second) << extent;
      if (kSide == Side::kB && row % 2 == 1) {
        EXPECT_EQ(extent, (boxed_extent<kSide, kMajor>(i, row - 1)) + 1);
      }
      if (kSide == Side::kA && kMajor == Major::kMN && row >= 8) {
        EXPECT_EQ(extent, (boxed_extent<kSide, kMajor>(i, row - 8)) + 1);
      }
    }
  }
}

TEST(BoxedTile, AWarpCoversItsExtentAndStoresNeighbours) {
  expect_warp_covers_its_extent<Side::kA, Major::kK>();
  expect_warp_covers_its_extent<Side::kA, Major::kMN>();
  expect_warp_covers_its_extent<Side::kB, Major::kK>();
  expect_warp_covers_its_extent<Side::kB, Major::kMN>();
}

template <Role kRole, Major kMajor>
void expect_fragment_order_fits() {
  constexpr int kExtent = 128;
  constexpr int kDepth = 16;
  const std::vector<int> memory = staged(
      kExtent, kDepth, [](int e, int d) { return fragment_offset<kMajor, kRole, kExtent>(e, d); });
  for (int k_block = 0; k_block < kDepth / 8; ++k_block) {
    for (int block = 0; block < kExtent / 16; ++block) {
      for (int lane = 0; lane < 32; ++lane) {
        const int offset = (k_block * (kExtent / 16) + block) * 128 +
                           (lane ^ fragment_key<kMajor>(block, lane)) * 4;
        for (int r = 0; r < 4; ++r) {
          // Two fragments of B, eight columns each, share a block.
          const Coordinate a = mma_a(lane, r);
          const Coordinate b = mma_b(lane, r % 2);
          const int e = kRole == Role::kA ? a.row : b.column + 8 * (r / 2);
          const int d = kRole == Role::kA ? a.column : b.row;
          EXPECT_EQ(memory[static_cast<size_t>(offset + r)],
                    (block * 16 + e) * kDepth + k_block * 8 + d);
        }
      }
    }
  }
}

TEST(FragmentOrder, LoadsPickWhatTheInstructionDemands) {
  expect_fragment_order_fits<Role::kA, Major::kK>();
  expect_fragment_order_fits<Role::kA, Major::kMN>();
  expect_fragment_order_fits<Role::kB, Major::kK>();
  expect_fragment_order_fits<Role::kB, Major::kMN>();
}

template <class Key>
void expect_linear(Key key) {
  for (int a = 0; a < 128; ++a) {
    for (int b = 0; b < 128; ++b) {
      if ((a & b) == 0) {
        EXPECT_EQ(key(a + b), key(a) ^ key(b)) << a << " + " << b;
      }
    }
  }
}

TEST(Keys, AddAsTheStagersAssume) {
  expect_linear(k_major_key<4>);
  expect_linear(k_major_key<8>);
  expect_linear(mn_major_key<4>);
  expect_linear(mn_major_key<8>);
}

template <int kWarpM, int kWarpN>
void expect_lanes_cover_the_warp_tile() {
  using Lanes = LaneGrid<kWarpM, kWarpN>;
  std::set<std::tuple<int, int>> seen;
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_TRUE(Lanes::row(lane) < Lanes::kPitchM && Lanes::column(lane) < Lanes::kPitchN);
    EXPECT_TRUE(seen.emplace(Lanes::row(lane), Lanes::column(lane)).second);
    EXPECT_EQ(Lanes::column(lane), Lanes::column(lane ^ 1));
    EXPECT_EQ(Lanes::row(lane), Lanes::row(lane ^ 2));
  }
}

TEST(ThreadMap, LanesCoverTheWarpTileAndShareItsLoads) {
  expect_lanes_cover_the_warp_tile<64, 64>();
  expect_lanes_cover_the_warp_tile<32, 64>();
}

/// Each number below `count` once.
std::map<int, int> once_each(int count) {
  std::map<int, int> numbers;
  for (int i = 0; i < count; ++i) {
    numbers[i] = 1;
  }
  return numbers;
}

TEST(ThreadMap, EveryElementIsMovedOnce) {
  constexpr int kExtent = 128;
  constexpr int kDepth = 16;
  constexpr int kThreads = 256;
  std::map<int, int> k_major;
  std::map<int, int> mn_major;
  std::map<int, int> transposed;
  for (int thread = 0; thread < kThreads; ++thread) {
    for (int i = 0; i < kExtent * kDepth / 4 / kThreads; ++i) {
      for (int j = 0; j < 4; ++j) {
        const Place k = register_share<Major::kK, kExtent, kDepth, kThreads>(thread, i);
        ++k_major[k.extent * kDepth + k.depth + j];
        const Place mn = register_share<Major::kMN, kExtent, kDepth, kThreads>(thread, i);
        ++mn_major[(mn.extent + j) * kDepth + mn.depth];
      }
    }
    const Place one = transposing_share(thread);
    ++transposed[one.extent * 8 + one.depth];
  }
  EXPECT_EQ(k_major, once_each(kExtent * kDepth));
  EXPECT_EQ(mn_major, once_each(kExtent * kDepth));
  EXPECT_EQ(transposed, once_each(kThreads / 32 * 4 * 8));
}

TEST(BankConflicts, AreCounted) {
  std::array<int, 32> offsets{};
  const auto passes = [&offsets](int width, int stride) {
    for (int lane = 0; lane < 32; ++lane) {
      offsets[static_cast<size_t>(lane)] = lane * stride;
    }
    return bank_passes(offsets, width);
  };
  EXPECT_EQ(passes(1, 0), 1);  // one word, to all
  EXPECT_EQ(passes(1, 1), 1);
  EXPECT_EQ(passes(1, 2), 2);
  EXPECT_EQ(passes(1, 32), 32);
  EXPECT_EQ(passes(1, 33), 1);
  EXPECT_EQ(passes(4, 4), 1);
  EXPECT_EQ(passes(4, 32), 8);  // eight lanes a phase, in the same four banks
  EXPECT_EQ(passes(4, 36), 1);
}

TEST(BankConflicts, OfEveryAccessAreBounded) {
  const std::vector<Access> table = access_table();
  // Four rungs, two operands, two majors, store and load; of rung 14 loads alone, of B in two ways.
  EXPECT_EQ(table.size(), 37U);
  for (const Access& access : table) {
    const bool fragment_store = access.rung == 10 && access.what.starts_with("store");
    EXPECT_LE(access.passes, fragment_store ? 2 : 1)
        << "rung " << access.rung << ", " << (access.tile == Role::kA ? "A" : "B") << ", "
        << (access.major == Major::kK ? "K-major" : "MN-major") << ": " << access.what;
  }
}

// The key has to vary over the axis that the filling warp walks: the other one leaves the
// conflicts.
TEST(BankConflicts, ComeBackWithTheKeyOfTheOtherAxis) {
  for (const Role role : {Role::kA, Role::kB}) {
    EXPECT_EQ(fragment_store_passes(role, Major::kK, Major::kMN), 8);
    EXPECT_EQ(fragment_store_passes(role, Major::kMN, Major::kK), 8);
  }
}

// What a warp reads of wgmma's tiles to hold rows of them in registers.
TEST(BankConflicts, OfRowsOfWarpgroupTilesAreNone) {
  std::array<int, 32> offsets{};
  for (int chunk = 0; chunk < kWarpgroupDepth / 4; ++chunk) {
    for (int lane = 0; lane < 32; ++lane) {  // eight rows a matrix, chunk by chunk
      offsets[static_cast<size_t>(lane)] = swizzled_chunk(lane % 8, (chunk + lane / 8) % 8);
    }
    EXPECT_EQ(bank_passes(offsets, 4), 1) << chunk;
  }
  for (int warp = 0; warp < kMultiplyingWarps; ++warp) {
    for (const int half : {0, 8}) {
      for (int k = 0; k < kWarpgroupDepth; k += 4) {
        for (int lane = 0; lane < 32; ++lane) {
          offsets[static_cast<size_t>(lane)] =
              panel_offset(panel_row(warp, half + lane / 4), k + lane % 4);
        }
        EXPECT_EQ(bank_passes(offsets, 1), 1) << warp << ", " << half << ", " << k;
      }
    }
  }
}

TEST(WarpgroupTile, EveryElementHasOnePlace) {
  constexpr int rows = 128;
  const auto swizzled = [](int row, int k) { return swizzled_chunk(row, k / 4) + k % 4; };
  staged(rows, kWarpgroupDepth, swizzled);
  staged(rows, kWarpgroupDepth, panel_offset);
}

TEST(WarpgroupTile, EveryRowIsOneWarps) {
  std::set<int> rows;
  for (int warp = 0; warp < kMultiplyingWarps; ++warp) {
    for (int row = 0; row < 16; ++row) {
      rows.insert(panel_row(warp, row));
    }
  }
  EXPECT_EQ(rows.size(), 128U);
  EXPECT_EQ(*rows.begin(), 0);
  EXPECT_EQ(*rows.rbegin(), 127);
}

// Every tile once, and neighbours in time in one band of rows.
TEST(TileOrder, VisitsEveryTileOnceBandByBand) {
  for (const int tiles_m : {1, 7, 8, 9, 32}) {
    for (const int tiles_n : {1, 3, 16}) {
      std::set<std::pair<int, int>> seen;
      for (int block = 0; block < tiles_m * tiles_n; ++block) {
        const TileCoordinate tile = tile_of_block(block, tiles_m, tiles_n);
        EXPECT_LT(tile.m, tiles_m);
        EXPECT_LT(tile.n, tiles_n);
        EXPECT_EQ(tile.m / 8, block / (8 * tiles_n));
        seen.emplace(tile.m, tile.n);
      }
      EXPECT_EQ(seen.size(), static_cast<size_t>(tiles_m * tiles_n));
    }
  }
}

}  // namespace
}  // namespace lockstep::layout
