// Which kernels the GPU's matrix product chooses, decided without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

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
  return kernel_facts(kernel).name.starts_with("wgmma");
}
bool is_split(GemmKernel kernel) {
  return kernel_facts(kernel).name.starts_with("split");
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
            GemmPlan part =
                sliced_plan(plan.kernel, plan.part_k > 0 ? plan.part_k : k, plan.slices);
            part.part_k = plan.part_k;
            part.swapped = plan.swapped;
            EXPECT_EQ(plan, part);
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
  EXPECT_EQ(plan_gemm(query, Precision::kFp32, gpu(108, 80)),
            sliced_plan(GemmKernel::kSimt128x128, 8192, 1));
  EXPECT_TRUE(is_split(plan_gemm(query, Precision::kFp32, gpu(132)).kernel));
  EXPECT_EQ(plan_gemm(query, Precision::kTf32, gpu(108, 80)),
            sliced_plan(GemmKernel::kMma128x128, 8192, 1));
  EXPECT_TRUE(is_wgmma(plan_gemm(query, Precision::kTf32, gpu(132)).kernel));
}

TEST(CudaGemmPlan, TakesSmallTilesWhereLargeOnesWouldBeFew) {
  const GemmQuery query = {256, 384, 64, Transpose::kNo, Transpose::kYes};
  EXPECT_EQ(plan_gemm(query, Precision::kTf32, gpu(108, 80)).kernel, GemmKernel::kMma64x64);
  EXPECT_NE(plan_gemm(query, Precision::kTf32, gpu(132)).kernel, GemmKernel::kWgmma128x256);
}

// A transposed copy costs more than the kernel saves, unless the product is large.
TEST(CudaGemmPlan, TransposesOnlyWhereItPays) {
  const auto weight_gradient = [](int64_t out, int64_t in, int64_t rows) {
    return plan_gemm({out, in, rows, Transpose::kYes, Transpose::kNo}, Precision::kTf32, gpu(132))
        .kernel;
  };
  EXPECT_FALSE(is_wgmma(weight_gradient(384, 384, 4096)));
  EXPECT_TRUE(is_wgmma(weight_gradient(3072, 3072, 32768)));
}

// The weight gradients of large models on long batches, the output projection's among them.
TEST(CudaGemmPlan, TransposesABoundedNumberOfElementsAtATime) {
  int64_t parted = 0;
  const auto check = [&parted](const GemmQuery& query, Precision precision) {
    const GemmPlan plan = plan_gemm(query, precision, gpu(132));
    SCOPED_TRACE(std::to_string(query.m) + " x " + std::to_string(query.n) + " x " +
                 std::to_string(query.k));
    EXPECT_LE(transposed_elements(plan, query), kMostTransposed);
    EXPECT_EQ(plan.part_k % 32, 0);
    const bool cut = plan.part_k > 0;
    parted += cut ? 1 : 0;
    GemmPlan whole = plan;
    whole.part_k = 0;
    EXPECT_TRUE(!cut || transposed_elements(whole, query) > kMostTransposed);
  };
  for (const Precision precision : kPrecisions) {
    for (const int64_t rows : {4096, 32768, 131072, 1 << 20, 1 << 27}) {
      for (const auto& [out, in] : {std::pair<int64_t, int64_t>{384, 384},
                                    {768, 768},
                                    {3072, 768},
                                    {768, 3072},
                                    {50304, 768},
                                    {50304, 12288}}) {
        check({out, in, rows, Transpose::kYes, Transpose::kNo}, precision);
        check({rows, in, out, Transpose::kNo, Transpose::kNo}, precision);
        check({rows, out, in, Transpose::kYes, Transpose::kYes}, precision);
      }
    }
  }
  EXPECT_GT(parted, 20);
}

// Parts that are too small would cost time: the model of it is the only witness without a GPU.
TEST(CudaGemmPlan, PartsTakeLittleLongerThanTheWhole) {
  const GemmQuery long_batch = {3072, 768, 1 << 20, Transpose::kYes, Transpose::kNo};
  const GemmPlan plan = plan_gemm(long_batch, Precision::kTf32, gpu(132));
  ASSERT_GT(plan.part_k, 0);
  GemmPlan whole = plan;
  whole.part_k = 0;
  whole.slice_depth = long_batch.k;
  whole.slices = 1;
  EXPECT_LT(plan_microseconds(plan, long_batch, gpu(132)),
            1.05 * plan_microseconds(whole, long_batch, gpu(132)));
}

// The copy is of the operand with fewer columns.
TEST(CudaGemmPlan, SwapsWhereThatCopiesLess) {
  for (const Precision precision : kPrecisions) {
    const auto plan_of = [precision](int64_t out, int64_t in) {
      return plan_gemm({out, in, 16384, Transpose::kYes, Transpose::kNo}, precision, gpu(132));
    };
    EXPECT_TRUE(plan_of(384, 1536).swapped);
    EXPECT_FALSE(plan_of(1536, 384).swapped);
  }
}

// On Hopper only, and not where filling the pipeline would take longer than the product.
TEST(CudaGemmPlan, SplitsFactorsOfSinglePrecisionWhereItPays) {
  const auto forward = [](int64_t rows, int64_t out, int64_t in, const CudaFacts& facts) {
    return plan_gemm({rows, out, in, Transpose::kNo, Transpose::kYes}, Precision::kFp32, facts)
        .kernel;
  };
  EXPECT_TRUE(is_split(forward(4096, 1536, 384, gpu(132))));
  EXPECT_FALSE(is_split(forward(4096, 1536, 384, gpu(142, 89))));
  EXPECT_FALSE(is_split(forward(64, 64, 8, gpu(132))));
}

TEST(CudaGemmPlan, CopiesOnlyWhatAKernelCannotReadAsItLies) {
  constexpr Transpose no = Transpose::kNo;
  constexpr Transpose yes = Transpose::kYes;
  EXPECT_FALSE(copies_b(GemmKernel::kMma64x64, {64, 64, 64, yes, no}));
  EXPECT_FALSE(copies_b(GemmKernel::kWgmma128x64, {64, 64, 64, no, yes}));
  EXPECT_TRUE(copies_b(GemmKernel::kWgmma128x64, {64, 64, 64, no, no}));
  EXPECT_TRUE(copies_b(GemmKernel::kWgmmaMn128x128, {64, 64, 64, yes, no}));
  EXPECT_FALSE(copies_b(GemmKernel::kSplit128x96, {68, 64, 64, yes, yes}));
}

TEST(CudaGemmPlan, KernelsReadTheAOfWhatTheyAreFor) {
  for (const Precision precision : kPrecisions) {
    for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
      const GemmQuery query = {256, 128, 64, trans_a, Transpose::kNo};
      for (const GemmKernel kernel : kernels_for(query, precision, gpu(132))) {
        EXPECT_TRUE(takes_a(kernel, query)) << kernel_facts(kernel).name;
        // A swapped product's a has the same major.
        EXPECT_TRUE(takes_a(kernel, swapped_query(query))) << kernel_facts(kernel).name;
      }
    }
  }
  constexpr Transpose no = Transpose::kNo;
  constexpr Transpose yes = Transpose::kYes;
  EXPECT_FALSE(takes_a(GemmKernel::kWgmma128x64, {64, 64, 64, yes, no}));
  EXPECT_FALSE(takes_a(GemmKernel::kPingPong64x192, {64, 64, 64, yes, no}));
  EXPECT_FALSE(takes_a(GemmKernel::kWgmmaMn128x128, {64, 64, 64, no, no}));
}

TEST(CudaGemmPlan, KernelsAreNamedForTheirTiles) {
  for (const Precision precision : kPrecisions) {
    for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
      const GemmQuery query = {256, 128, 64, trans_a, Transpose::kNo};
      for (const GemmKernel kernel : kernels_for(query, precision, gpu(132))) {
        const GemmKernelFacts facts = kernel_facts(kernel);
        const std::string tile = std::to_string(facts.tile_m) + "x" + std::to_string(facts.tile_n);
        EXPECT_NE(facts.name.find(" " + tile), std::string_view::npos) << facts.name;
      }
    }
  }
}

// The char model's head and a layer of it.
TEST(CudaGemmPlan, BlocksThatStayHaveTilesThatEndWithB) {
  const auto forward = [](int64_t out) {
    return plan_gemm({4096, out, 384, Transpose::kNo, Transpose::kYes}, Precision::kTf32, gpu(132))
        .kernel;
  };
  EXPECT_EQ(forward(80), GemmKernel::kWgmma128x64);
  EXPECT_EQ(forward(384), GemmKernel::kPingPong64x192);
}

TEST(CudaGemmPlan, UnalignedRowsHaveKernelsOfTheirOwn) {
  for (const Precision precision : kPrecisions) {
    GemmQuery query = {129, 65, 33, Transpose::kNo, Transpose::kYes, false};
    const auto able = kernels_for(query, precision, gpu(132));
    ASSERT_EQ(able.size(), 1U);
    EXPECT_TRUE(takes_unaligned(able.front()));
  }
  EXPECT_FALSE(takes_unaligned(GemmKernel::kMma128x64));
  EXPECT_FALSE(takes_unaligned(GemmKernel::kWgmma128x64));
}

}  // namespace
}  // namespace lockstep
