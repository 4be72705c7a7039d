// What products take of scratch memory on a GPU, without one.
#include <gtest/gtest.h>

#include "kernels/cuda/gemm/scratch.h"

namespace lockstep {
namespace {

constexpr bool kFused = true;
constexpr GemmQuery kForward = {.m = 256, .n = 384, .k = 512, .trans_b = Transpose::kYes};
constexpr GemmQuery kWeights = {
    .m = 384, .n = 256, .k = 4096, .trans_a = Transpose::kYes, .a_sums = true};

TEST(GemmScratch, IsNoneForWhatIsReadAsItLiesAndFinishedAtOnce) {
  EXPECT_EQ(gemm_scratch(kForward, {.kernel = GemmKernel::kWgmma128x128}, kFused).total(), 0);
  EXPECT_EQ(gemm_scratch(kForward, {.kernel = GemmKernel::kWgmma128x128}, !kFused).partials,
            256 * 384);
}

TEST(GemmScratch, HoldsSlicesAndATransposedB) {
  const GemmQuery query = {.m = 256, .n = 384, .k = 512};
  const GemmScratch scratch = gemm_scratch(
      query, {.kernel = GemmKernel::kWgmma128x128, .slices = 2, .slice_depth = 256}, kFused);
  EXPECT_EQ(scratch.partials, 2 * 256 * 384);
  EXPECT_EQ(scratch.b, 384 * 512);
  EXPECT_EQ(scratch.sums, 0);
  EXPECT_EQ(scratch.a_partials, 0);
}

TEST(GemmScratch, HoldsTheSumsOfPartsAndTheCopyOfOne) {
  const GemmScratch scratch =
      gemm_scratch(kWeights, {.kernel = GemmKernel::kWgmmaMn128x128, .part_k = 1024}, kFused);
  EXPECT_EQ(scratch.sums, 4 * 384 * 256);
  EXPECT_EQ(scratch.partials, 0);
  EXPECT_EQ(scratch.b, 256 * 1024);
  EXPECT_EQ(scratch.a_partials, 4 * 384);  // a slice of each part
}

TEST(GemmScratch, OfASwappedProductHoldsACopyOfTheOtherOperandAndItsRuns) {
  const GemmScratch scratch =
      gemm_scratch(kWeights, {.kernel = GemmKernel::kWgmmaMn128x128, .swapped = true}, kFused);
  EXPECT_EQ(scratch.partials, 384 * 256);  // which are transposed
  EXPECT_EQ(scratch.b, 384 * 4096);
  EXPECT_EQ(scratch.a_partials, 4096 / 64 * 384);
}

TEST(GemmScratch, LeavesAsSumsToAnotherPassWhereTheKernelHasNone) {
  const GemmScratch scratch = gemm_scratch(kWeights, {.kernel = GemmKernel::kMma128x128}, kFused);
  EXPECT_EQ(scratch.total(), 0);
}

}  // namespace
}  // namespace lockstep
