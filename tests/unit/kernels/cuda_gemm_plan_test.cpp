// Which kernels the GPU's matrix product chooses, decided without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/gemm/plan.h"

namespace lockstep {
namespace {

constexpr Precision kPrecisions[] = {Precision::kFp32, Precision::kTf32};
constexpr int64_t kSizes[] = {1, 64, 384, 1000, 4096, 50304};

CudaFacts gpu(int multiprocessors, int compute_capability = 90) {
  CudaFacts facts;
  facts.multiprocessors = multiprocessors;
  facts.compute_capability = compute_capability;
  return facts;
}

int64_t blocks(const GemmPlan& plan, int64_t m, int64_t n) {
  const GemmKernelFacts tile = kernel_facts(plan.kernel);
  return (m + tile.tile_m - 1) / tile.tile_m * ((n + tile.tile_n - 1) / tile.tile_n) * plan.slices;
}

TEST(CudaGemmPlan, SlicesCoverTheDepthAndNoneIsEmpty) {
  for (const int64_t k : {1, 31, 32, 33, 64, 1000, 4096, 4097, 50304}) {
    for (int64_t slices = 1; slices <= 40; ++slices) {
      const GemmPlan plan = sliced_plan(GemmKernel::kMma64x64, k, slices);
      EXPECT_LE(plan.slices, slices);
      EXPECT_GE(plan.slices * plan.slice_depth, k);
      EXPECT_LT((plan.slices - 1) * plan.slice_depth, k);
      EXPECT_TRUE(plan.slices == 1 || plan.slice_depth % 32 == 0) << k << " in " << slices;
    }
  }
}

bool is_wgmma(GemmKernel kernel) {
  return kernel_facts(kernel).k_major_only;
}

TEST(CudaGemmPlan, AlwaysIsOneThatCan) {
  for (const Precision precision : kPrecisions) {
    for (const CudaFacts& facts : {gpu(1), gpu(46, 86), gpu(108, 80), gpu(132)}) {
      for (const int64_t m : kSizes) {
        for (const int64_t n : kSizes) {
          for (const int64_t k : {int64_t{0}, int64_t{5}, int64_t{384}, int64_t{32768}}) {
            const GemmQuery query = {
                m, n, k, Transpose::kYes, Transpose::kNo, m % 4 == 0 && n % 4 == 0};
            const GemmPlan plan = plan_gemm(query, precision, facts);
            const auto able = kernels_for(query, precision, facts);
            EXPECT_EQ(plan, sliced_plan(plan.kernel, k, plan.slices));
            EXPECT_NE(std::find(able.begin(), able.end(), plan.kernel), able.end());
          }
        }
      }
    }
  }
}

TEST(CudaGemmPlan, LeavesNoMultiprocessorIdleWhereKAllowsIt) {
  for (const Precision precision : kPrecisions) {
    for (const int64_t m : {80, 384, 1536}) {
      const GemmPlan plan =
          plan_gemm({m, 384, 4096, Transpose::kYes, Transpose::kNo}, precision, gpu(132));
      EXPECT_GE(blocks(plan, m, 384), 80) << m;
      EXPECT_GT(plan.slices, 1) << m;
    }
  }
}

TEST(CudaGemmPlan, TakesLargeTilesAndNoSlicesWhenThereIsEnoughWork) {
  const GemmQuery query = {8192, 8192, 8192, Transpose::kNo, Transpose::kYes};
  EXPECT_EQ(plan_gemm(query, Precision::kFp32, gpu(132)),
            sliced_plan(GemmKernel::kSimt128x128, 8192, 1));
  EXPECT_EQ(plan_gemm(query, Precision::kTf32, gpu(108, 80)),
            sliced_plan(GemmKernel::kMma128x128, 8192, 1));
  EXPECT_TRUE(is_wgmma(plan_gemm(query, Precision::kTf32, gpu(132)).kernel));
}

TEST(CudaGemmPlan, TakesSmallTilesWhereLargeOnesWouldBeFew) {
  const GemmQuery query = {256, 384, 64, Transpose::kNo, Transpose::kYes};
  EXPECT_EQ(plan_gemm(query, Precision::kTf32, gpu(108, 80)).kernel, GemmKernel::kMma64x64);
  EXPECT_NE(plan_gemm(query, Precision::kTf32, gpu(132)).kernel, GemmKernel::kWgmma128x256);
}

// Copies to transpose both operands cost more than the kernel saves, unless the product is large.
TEST(CudaGemmPlan, TransposesOnlyWhereItPays) {
  const auto weight_gradient = [](int64_t out, int64_t in, int64_t rows) {
    return plan_gemm({out, in, rows, Transpose::kYes, Transpose::kNo}, Precision::kTf32, gpu(132))
        .kernel;
  };
  EXPECT_FALSE(is_wgmma(weight_gradient(384, 384, 4096)));
  EXPECT_TRUE(is_wgmma(weight_gradient(3072, 3072, 32768)));
}

TEST(CudaGemmPlan, UnalignedRowsHaveKernelsOfTheirOwn) {
  for (const Precision precision : kPrecisions) {
    GemmQuery query = {129, 65, 33, Transpose::kNo, Transpose::kYes, false};
    EXPECT_EQ(kernels_for(query, precision, gpu(132)).size(), 1U);
  }
}

}  // namespace
}  // namespace lockstep
