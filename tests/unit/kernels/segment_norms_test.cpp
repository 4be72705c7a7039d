#include "kernels/segment_norms.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reduce.h"
#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

constexpr int64_t kS = kSegmentElements;

/// What `ranks` ranks find together, each the sums of its shard.
double norm_by(int64_t ranks, const std::vector<float>& x) {
  const SegmentSums layout{static_cast<int64_t>(x.size()), ranks};
  std::vector<double> sums(static_cast<size_t>(layout.size()));
  const CpuView<double> view(sums.data(), layout.size());
  CpuStream stream(2);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    segment_norms(stream, {.sums = view, .x = view_of(x), .shard = {rank, ranks}});
  }
  double out = std::numeric_limits<double>::quiet_NaN();
  norm_of_segments(stream, {.out = {&out, 1}, .sums = view, .layout = layout});
  return out;
}

TEST(SegmentNorms, HaveTheSameBitsForAnyNumberOfRanks) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, kS, kS + 3, 7 * kS - 1, 11 * kS + 100}) {
    const std::vector<float> x = normal_values(size, 1);
    const double one = norm_by(1, x);
    double reference = 0;
    for (const float value : x) {
      reference += static_cast<double>(value) * value;
    }
    EXPECT_NEAR(one, reference, 1e-12 * reference);
    for (const int64_t ranks : {2, 3, 5}) {
      EXPECT_EQ(std::bit_cast<uint64_t>(norm_by(ranks, x)), std::bit_cast<uint64_t>(one))
          << size << " by " << ranks;
    }
    CpuStream stream;
    double whole = 0;
    squared_norm(stream, {.out = {&whole, 1}, .x = view_of(x)});
    EXPECT_EQ(std::bit_cast<uint64_t>(whole), std::bit_cast<uint64_t>(one));
  }
}

// So that each rank's are gathered as the elements of a window are.
TEST(SegmentSums, LieInSegmentsOfTheirRanks) {
  constexpr int64_t kFloats = sizeof(double) / sizeof(float);
  for (const int64_t ranks : {2, 3}) {
    const SegmentSums layout{(2 * ranks * SegmentSums::kRow + 5) * kS, ranks};
    EXPECT_EQ(layout.size() * kFloats % (ranks * kS), 0);
    std::vector<bool> taken(static_cast<size_t>(layout.size()), false);
    for (int64_t segment = 0; segment < layout.segments(); ++segment) {
      const int64_t place = layout.place(segment);
      ASSERT_LT(place, layout.size());
      EXPECT_FALSE(taken[static_cast<size_t>(place)]) << segment;
      taken[static_cast<size_t>(place)] = true;
      EXPECT_TRUE((ArenaShard{segment % ranks, ranks}.owns(place * kFloats)));
      EXPECT_TRUE((ArenaShard{segment % ranks, ranks}.owns(place * kFloats + 1)));
    }
  }
}

}  // namespace
}  // namespace lockstep
