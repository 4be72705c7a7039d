#include "kernels/cpu/gemm_plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace lockstep {
namespace {

struct Sizes {
  int64_t m;
  int64_t n;
  int64_t k;
};

std::vector<Sizes> shapes() {
  return {{1, 1, 1},       {384, 384, 128},  {384, 80, 128},     {80, 128, 384},
          {128, 128, 384}, {80, 384, 65536}, {4096, 50272, 768}, {1536, 384, 4096}};
}

TEST(GemmPlan, PartsOfKDoNotDependOnThreads) {
  for (const auto& [m, n, k] : shapes()) {
    for (const int threads : {2, 3, 8, 64}) {
      EXPECT_EQ(plan_gemm(m, n, k, threads).k_parts, plan_gemm(m, n, k, 1).k_parts);
    }
  }
}

TEST(GemmPlan, OneThreadIsNotCutIntoRectangles) {
  for (const auto& [m, n, k] : shapes()) {
    const GemmPlan plan = plan_gemm(m, n, k, 1);
    EXPECT_EQ(plan.row_parts * plan.column_parts, 1);
  }
}

TEST(GemmPlan, EveryThreadHasWorkWhereThereIsEnough) {
  for (const int threads : {2, 3, 4, 8, 12}) {
    for (const auto& [m, n, k] :
         {Sizes{384, 384, 128}, {4096, 1152, 384}, {128, 512, 384}, {80, 384, 65536}}) {
      EXPECT_GE(plan_gemm(m, n, k, threads).tasks(), threads) << m << " " << n << " " << k;
    }
  }
  EXPECT_EQ(plan_gemm(16, 16, 16, 8).tasks(), 1) << "too small to share out";
}

TEST(GemmPlan, TwoThreadsGetHalfEach) {
  for (const auto& [m, n, k] : shapes()) {
    const GemmPlan plan = plan_gemm(m, n, k, 2);
    if (plan.tasks() != 2 || plan.k_parts != 1) {
      continue;
    }
    const int64_t size = plan.row_parts == 2 ? m : n;
    const int64_t middle = part_begin(size, 2, GemmPlan::kStep, 1);
    EXPECT_LE(std::abs(size - 2 * middle), 2 * GemmPlan::kStep);
  }
}

TEST(GemmPlan, PartsCoverEveryElementOnce) {
  for (const int64_t size : {1, 31, 32, 33, 80, 127, 1000}) {
    for (const int64_t parts : {1, 2, 3, 5, 40}) {
      EXPECT_EQ(part_begin(size, parts, GemmPlan::kStep, 0), 0);
      EXPECT_EQ(part_begin(size, parts, GemmPlan::kStep, parts), size);
      for (int64_t part = 0; part < parts; ++part) {
        EXPECT_LE(part_begin(size, parts, GemmPlan::kStep, part),
                  part_begin(size, parts, GemmPlan::kStep, part + 1));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
