#pragma once

#include <cstdint>

#include "core/device/cuda_device.h"
#include "kernels/gemm.h"

namespace lockstep {

/// How much of c a block computes. Larger tiles read less for each product; smaller ones give every
/// multiprocessor something to do.
enum class GemmTile : uint8_t { kLarge, kMedium, kSmall };

struct TileExtents {
  int64_t m;
  int64_t n;
};
TileExtents tile_extents(GemmTile tile);

/// How a product is computed: by which tile, and k in how many slices, whose sums are added in
/// their order by a second kernel.
struct GemmPlan {
  GemmTile tile = GemmTile::kLarge;
  int64_t slices = 1;
  int64_t slice_depth = 0;  ///< of k; a multiple of 32 when there are several slices

  friend bool operator==(const GemmPlan&, const GemmPlan&) = default;
};

/// k in `slices` parts, or in fewer when that leaves one empty.
GemmPlan sliced_plan(GemmTile tile, int64_t k, int64_t slices);

/// The plan that the model of a multiprocessor's time in plan.cpp expects to be the fastest.
GemmPlan plan_gemm(int64_t m, int64_t n, int64_t k, Precision precision, const CudaFacts& facts);

/// gemm by a plan of the caller's choice, for tests and benches.
void gemm_by_plan(CudaStream& stream, const Gemm<CudaDevice>& problem, const GemmPlan& plan);

}  // namespace lockstep
