#include "kernels/cpu/gemm_plan.h"

#include <algorithm>

namespace lockstep {
namespace {

// Below this many multiplications a thread costs more to start than it saves: about a microsecond.
constexpr int64_t kWorkOfThread = int64_t{64} * 1024;
// Parts of k: only where c is so small that its rows and columns cannot occupy many threads, and
// never so short that adding the parts up shows.
constexpr int64_t kSmallC = int64_t{128} * 1024;
constexpr int64_t kPartOfK = 1024;
constexpr int64_t kMaxPartsOfK = 8;
constexpr int64_t kStep = GemmPlan::kStep;

int64_t k_parts(int64_t m, int64_t n, int64_t k) {
  if (m * n > kSmallC) {
    return 1;
  }
  return std::clamp(k / kPartOfK, int64_t{1}, kMaxPartsOfK);
}

}  // namespace

GemmPlan plan_gemm(int64_t m, int64_t n, int64_t k, int threads) {
  GemmPlan plan;
  plan.k_parts = k_parts(m, n, k);
  const int64_t work = m * n * std::max<int64_t>(k, 1);
  const int64_t useful = std::clamp<int64_t>(work / kWorkOfThread, 1, std::max(threads, 1));
  if (useful <= plan.k_parts) {
    return plan;
  }
  // Every rectangle packs its share of b again for each row of rectangles, and reads its share of a
  // again for each column: of the grids with enough rectangles take the one that finishes first,
  // then the one that copies least.
  const int64_t wanted = (useful + plan.k_parts - 1) / plan.k_parts;
  const int64_t rows = (m + kStep - 1) / kStep;
  const int64_t columns = (n + kStep - 1) / kStep;
  double best = 0;
  for (int64_t row_parts = 1; row_parts <= std::min(wanted, rows); ++row_parts) {
    const int64_t column_parts = std::min((wanted + row_parts - 1) / row_parts, columns);
    const int64_t tile_rows = (rows + row_parts - 1) / row_parts;
    const int64_t tile_columns = (columns + column_parts - 1) / column_parts;
    const auto area =
        static_cast<double>(tile_rows * kStep) * static_cast<double>(tile_columns * kStep);
    const auto edges = static_cast<double>(tile_rows * kStep + 4 * tile_columns * kStep);
    const double cost = area + 2 * edges;
    if (row_parts == 1 || cost < best) {
      best = cost;
      plan.row_parts = row_parts;
      plan.column_parts = column_parts;
    }
  }
  return plan;
}

}  // namespace lockstep
