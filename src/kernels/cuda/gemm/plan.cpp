#include "kernels/cuda/gemm/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr int64_t kSliceStep = 32;  // the deepest stage of any kernel
// So many that the last one's idle multiprocessors are no reason to slice: blocks drift apart.
constexpr int64_t kManyWaves = 4;
constexpr int64_t kSliceCounts[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32};

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// What a tile's kernel does on one multiprocessor. Fitted to the times of every plan of the shapes
// of `gemm_bench --model char` and `--model 124m` on an H200; what matters is which plan comes out
// as the fastest, and that holds on other GPUs as far as their multiprocessors are alike.
struct TileSpeed {
  int64_t resident;     // blocks at a time
  double rate;          // multiply-adds a microsecond, in units of 1e6, with endless blocks
  double half;          // blocks that reach half of that
  double filling;       // k whose time passes before the first and after the last stage
  double start_us;      // of a launch
  double sum_rate;      // bytes a microsecond, in units of 1e6, of the kernel that adds slices
  double sum_start_us;  // of its launch
};

constexpr std::array<TileSpeed, 3> kFp32 = {{{2, 0.198, 0.179, 40.2, 0.324, 13.3, 0.798},
                                             {4, 0.167, 0.136, 17.9, 2.27, 13.9, 0.627},
                                             {8, 0.184, 1.26, 19.8, 2.70, 10.8, 0.362}}};
constexpr std::array<TileSpeed, 3> kTf32 = {{{2, 0.892, 0.267, 228, 1.31, 3.73, 0.136},
                                             {3, 0.737, 0.350, 126, 1.38, 5.30, 1.36},
                                             {4, 0.617, 0.230, 101, 1.87, 7.12, 1.25}}};

int64_t blocks_of(const GemmPlan& plan, int64_t m, int64_t n) {
  const auto [tile_m, tile_n] = tile_extents(plan.tile);
  return ceil_div(m, tile_m) * ceil_div(n, tile_n) * plan.slices;
}

// Rounds of all the blocks that fit the machine at once, whole ones.
int64_t waves_of(const GemmPlan& plan, int64_t m, int64_t n, const TileSpeed& speed,
                 const CudaFacts& facts) {
  return blocks_of(plan, m, n) / (speed.resident * facts.multiprocessors);
}

double microseconds(const GemmPlan& plan, int64_t m, int64_t n, const TileSpeed& speed,
                    const CudaFacts& facts) {
  const auto [tile_m, tile_n] = tile_extents(plan.tile);
  const double work = static_cast<double>(tile_m * tile_n) *
                      (static_cast<double>(plan.slice_depth) + speed.filling) * 1e-6;
  // A multiprocessor takes as many blocks at a time as are resident, which then share its rate.
  const auto together = [&](int64_t count) {
    return work * (static_cast<double>(count) + speed.half) / speed.rate;
  };
  const int64_t waves = waves_of(plan, m, n, speed, facts);
  const int64_t rest =
      ceil_div(blocks_of(plan, m, n) - waves * speed.resident * facts.multiprocessors,
               facts.multiprocessors);
  double time = speed.start_us + static_cast<double>(waves) * together(speed.resident) +
                (rest > 0 ? together(rest) : 0.0);
  if (plan.slices > 1) {
    time += speed.sum_start_us +
            static_cast<double>((plan.slices + 1) * m * n) * sizeof(float) / (speed.sum_rate * 1e6);
  }
  return time;
}

}  // namespace

TileExtents tile_extents(GemmTile tile) {
  switch (tile) {
    case GemmTile::kLarge:
      return {128, 128};
    case GemmTile::kMedium:
      return {128, 64};
    case GemmTile::kSmall:
      break;
  }
  return {64, 64};
}

GemmPlan sliced_plan(GemmTile tile, int64_t k, int64_t slices) {
  if (slices <= 1 || k <= kSliceStep) {
    return {tile, 1, k};
  }
  const int64_t depth = ceil_div(ceil_div(k, slices), kSliceStep) * kSliceStep;
  return {tile, ceil_div(k, depth), depth};
}

GemmPlan plan_gemm(int64_t m, int64_t n, int64_t k, Precision precision, const CudaFacts& facts) {
  const std::array<TileSpeed, 3>& speeds = precision == Precision::kTf32 ? kTf32 : kFp32;
  GemmPlan best;
  double best_time = std::numeric_limits<double>::infinity();
  for (const GemmTile tile : {GemmTile::kLarge, GemmTile::kMedium, GemmTile::kSmall}) {
    const TileSpeed& speed = speeds[static_cast<std::size_t>(tile)];
    for (const int64_t slices : kSliceCounts) {
      const GemmPlan plan = sliced_plan(tile, k, slices);
      if (slices > 1 && waves_of(sliced_plan(tile, k, 1), m, n, speed, facts) >= kManyWaves) {
        break;
      }
      const double time = microseconds(plan, m, n, speed, facts);
      if (time < best_time) {
        best_time = time;
        best = plan;
      }
    }
  }
  return best;
}

}  // namespace lockstep
