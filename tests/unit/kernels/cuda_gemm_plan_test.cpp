// Which kernels the GPU's matrix product chooses, decided without a GPU.
#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/cuda/gemm/plan.h"

namespace lockstep {
namespace {

constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kTf32};
constexpr int64_t kSizes[] = {1, 64, 384, 1000, 4096, 50304};

CudaFacts gpu(int multiprocessors) {
  CudaFacts facts;
  facts.multiprocessors = multiprocessors;
  return facts;
}

int64_t blocks(const GemmPlan& plan, int64_t m, int64_t n) {
  const TileExtents tile = tile_extents(plan.tile);
  return (m + tile.m - 1) / tile.m * ((n + tile.n - 1) / tile.n) * plan.slices;
}

TEST(CudaGemmPlan, SlicesCoverTheDepthAndNoneIsEmpty) {
  for (const int64_t k : {1, 31, 32, 33, 64, 1000, 4096, 4097, 50304}) {
    for (int64_t slices = 1; slices <= 40; ++slices) {
      const GemmPlan plan = sliced_plan(GemmTile::kSmall, k, slices);
      EXPECT_LE(plan.slices, slices);
      EXPECT_GE(plan.slices * plan.slice_depth, k);
      EXPECT_LT((plan.slices - 1) * plan.slice_depth, k);
      EXPECT_TRUE(plan.slices == 1 || plan.slice_depth % 32 == 0) << k << " in " << slices;
    }
  }
}

TEST(CudaGemmPlan, AlwaysIsOneOfTheSlicedPlans) {
  for (const Precision precision : kPrecisions) {
    for (const int multiprocessors : {1, 46, 108, 132}) {
      for (const int64_t m : kSizes) {
        for (const int64_t n : kSizes) {
          for (const int64_t k : {int64_t{0}, int64_t{5}, int64_t{384}, int64_t{32768}}) {
            const GemmPlan plan = plan_gemm(m, n, k, precision, gpu(multiprocessors));
            EXPECT_EQ(plan, sliced_plan(plan.tile, k, plan.slices));
            EXPECT_EQ(plan, plan_gemm(m, n, k, precision, gpu(multiprocessors)));
          }
        }
      }
    }
  }
}

TEST(CudaGemmPlan, LeavesNoMultiprocessorIdleWhereKAllowsIt) {
  for (const Precision precision : kPrecisions) {
    for (const int64_t m : {80, 384, 1536}) {
      const GemmPlan plan = plan_gemm(m, 384, 4096, precision, gpu(132));
      EXPECT_GE(blocks(plan, m, 384), 80) << m;
      EXPECT_GT(plan.slices, 1) << m;
    }
  }
}

TEST(CudaGemmPlan, TakesLargeTilesAndNoSlicesWhenThereIsEnoughWork) {
  for (const Precision precision : kPrecisions) {
    EXPECT_EQ(plan_gemm(32768, 3072, 768, precision, gpu(132)),
              sliced_plan(GemmTile::kLarge, 768, 1));
    EXPECT_EQ(plan_gemm(8192, 8192, 8192, precision, gpu(132)),
              sliced_plan(GemmTile::kLarge, 8192, 1));
  }
}

TEST(CudaGemmPlan, TakesSmallTilesWhereLargeOnesWouldBeFew) {
  EXPECT_NE(plan_gemm(4096, 384, 384, Precision::kTf32, gpu(132)).tile, GemmTile::kLarge);
  EXPECT_EQ(plan_gemm(256, 384, 64, Precision::kTf32, gpu(132)).tile, GemmTile::kSmall);
}

}  // namespace
}  // namespace lockstep
