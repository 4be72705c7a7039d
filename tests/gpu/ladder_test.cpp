// Every rung of the ladder against double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda_device.h"
#include "gpu/gemm_cases.h"
#include "gpu/guarded.h"
#include "kernels/cuda/ladder/rung.h"
#include "support/naive_gemm.h"

namespace lockstep {
namespace {

using naive::GemmOperands;

// Below, at and beyond the edges of every tile; none of k; whole tiles and several of them; rows
// that start at multiples of 16 bytes, whatever is transposed, and end inside of tiles.
constexpr Size kSizes[] = {{1, 1, 1},       {3, 65, 127},     {65, 129, 3},   {127, 3, 1000},
                           {129, 1000, 65}, {1000, 127, 129}, {256, 384, 96}, {5, 7, 0},
                           {4, 4, 4},       {132, 260, 36},   {132, 260, 37}, {516, 140, 300},
                           {12, 68, 292}};

/// All that this GPU has the shared memory for; says which it has not.
const std::vector<Rung>& rungs_that_fit() {
  static const std::vector<Rung> rungs = [] {
    std::vector<Rung> fitting;
    for (const Rung& rung : ladder()) {
      if (rung.resources(Transpose::kNo, Transpose::kNo).resident_blocks > 0) {
        fitting.push_back(rung);
      } else {
        std::cout << "left out: rung " << rung.number << ", whose blocks do not fit this GPU\n";
      }
    }
    return fitting;
  }();
  return rungs;
}

std::vector<float> product_of(CudaStream& stream, const Rung& rung, const GemmOperands& in,
                              int64_t shift) {
  Guarded a(stream, in.a, shift);
  Guarded b(stream, in.b, shift);
  Guarded c(stream, std::vector<float>(static_cast<size_t>(in.m * in.n), std::nanf("")), shift);
  rung.launch(stream, {.m = in.m,
                       .n = in.n,
                       .k = in.k,
                       .trans_a = in.trans_a,
                       .trans_b = in.trans_b,
                       .a = a.view(),
                       .b = b.view(),
                       .c = c.view()});
  stream.synchronize();
  return c.values();
}

void check_rungs(const Size& size, Transpose trans_a, Transpose trans_b, int64_t shift) {
  CudaStream stream;
  const GemmOperands in = operands(size, trans_a, trans_b);
  const std::vector<double> reference = naive::gemm_product<double>(in);
  const ErrorBounds bounds = error_bounds(in, reference);
  for (const Rung& rung : rungs_that_fit()) {
    SCOPED_TRACE(::testing::Message()
                 << "rung " << rung.number << ", " << size.m << " x " << size.n << " x " << size.k
                 << (trans_a == Transpose::kYes ? " T" : " N")
                 << (trans_b == Transpose::kYes ? "T" : "N") << ", shift " << shift);
    const std::vector<float> once = product_of(stream, rung, in, shift);
    EXPECT_LE(error(once, reference),
              (rung.precision == Precision::kTf32 ? bounds.tf32 : bounds.fp32) + rung.left_out);
    const std::vector<float> again = product_of(stream, rung, in, shift);
    EXPECT_EQ(std::memcmp(once.data(), again.data(), once.size() * sizeof(float)), 0)
        << "two runs differ";
  }
}

class Ladder : public ::testing::Test {
 protected:
  void SetUp() override { require_cuda_device(); }
};

class LadderSizes : public Ladder, public ::testing::WithParamInterface<Size> {};

TEST_P(LadderSizes, MatchesDoublePrecisionInEveryCase) {
  for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
      check_rungs(GetParam(), trans_a, trans_b, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder, LadderSizes, ::testing::ValuesIn(kSizes), [](const auto& test) {
  return std::to_string(test.param.m) + "x" + std::to_string(test.param.n) + "x" +
         std::to_string(test.param.k);
});

TEST_F(Ladder, NeedsNoAlignment) {
  for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
    for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
      check_rungs({128, 128, 64}, trans_a, trans_b, 1);
    }
  }
}

TEST_F(Ladder, RefusesWhatItDoesNotCompute) {
  CudaStream stream;
  CudaBuffer<float> memory(16);
  const Gemm<CudaDevice> fits = {.m = 4,
                                 .n = 4,
                                 .k = 4,
                                 .a = std::as_const(memory).view(),
                                 .b = std::as_const(memory).view(),
                                 .c = memory.view()};
  Gemm<CudaDevice> large = fits;
  large.k = 5;
  Gemm<CudaDevice> accumulating = fits;
  accumulating.accumulate = true;
  for (const Rung& rung : ladder()) {
    EXPECT_THROW(rung.launch(stream, large), InternalError);
    EXPECT_THROW(rung.launch(stream, accumulating), InternalError);
  }
}

// What a change of a kernel or of the compiler must not lose without a word. The bounds are those
// of sm_90; spilled bytes and blocks are stated in the rungs' files.
TEST_F(Ladder, KeepsItsRegistersAndResidentBlocks) {
  if (cuda_facts(0).compute_capability != 90) {
    GTEST_SKIP() << "the bounds are those of compute capability 9.0";
  }
  for (const Rung& rung : ladder()) {
    for (const Transpose trans_a : {Transpose::kNo, Transpose::kYes}) {
      for (const Transpose trans_b : {Transpose::kNo, Transpose::kYes}) {
        SCOPED_TRACE(rung.number);
        const Rung::Resources uses = rung.resources(trans_a, trans_b);
        EXPECT_LE(uses.spilled_bytes, rung.number == 9 ? 16 : 0);
        EXPECT_GE(uses.resident_blocks, rung.number >= 8 && rung.number <= 10 ? 2 : 1);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
