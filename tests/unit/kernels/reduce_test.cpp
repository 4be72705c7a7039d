#include "kernels/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "support/naive_ops.h"
#include "support/op_check.h"

namespace lockstep {
namespace {

std::vector<float> run_column_sum(CpuStream& stream, int64_t columns, const std::vector<float>& in,
                                  const std::vector<float>& start, bool accumulate) {
  Output out(start);
  column_sum(stream, {.rows = static_cast<int64_t>(in.size()) / columns,
                      .columns = columns,
                      .out = out.view(),
                      .in = view_of(in),
                      .accumulate = accumulate});
  return out.values();
}

TEST(ColumnSum, MatchesTheReferenceAndAddsAFinishedSum) {
  struct Case {
    int64_t rows;
    int64_t columns;
  };
  for (const auto [rows, columns] :
       {Case{1, 1}, Case{0, 5}, Case{3, 7}, Case{384, 128}, Case{1000, 33}, Case{65, 1537}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    const auto in = normal_values(rows * columns, 1);
    const auto poison = Output(columns).values();
    const auto out = at_any_thread_count("out", [&, columns = columns](CpuStream& stream) {
      return run_column_sum(stream, columns, in, poison, false);
    });
    expect_close("out", out, naive::column_sum(columns, in),
                 naive::column_sum(columns, to_double(in)));
    std::vector<float> expected = normal_values(columns, 2);
    CpuStream stream;
    const auto added = run_column_sum(stream, columns, in, expected, true);
    for (size_t c = 0; c < expected.size(); ++c) {
      expected[c] += out[c];
    }
    expect_same_bits("accumulated", added, expected);
  }
}

double sum_of_squares(const std::vector<float>& x) {
  long double total = 0;
  for (const float value : x) {
    total += static_cast<long double>(value) * static_cast<long double>(value);
  }
  return static_cast<double>(total);
}

TEST(SquaredNorm, MatchesTheReferenceWithTheSameBitsAtAnyThreadCount) {
  for (const int64_t size : {0, 1, 15, 4096, 100003, 1000000}) {
    const auto x = normal_values(size, 1);
    std::vector<uint64_t> bits;
    for (const int threads : {1, 2, 3, 5}) {
      CpuStream stream(threads);
      double out = std::numeric_limits<double>::quiet_NaN();
      squared_norm(stream, {.out = {&out, 1}, .x = view_of(x)});
      bits.push_back(std::bit_cast<uint64_t>(out));
      const double reference = sum_of_squares(x);
      EXPECT_NEAR(out, reference, 1e-13 * reference);
    }
    EXPECT_EQ(bits, std::vector<uint64_t>(4, bits[0])) << size;
  }
}

// Squares that overflow or vanish in float.
TEST(SquaredNorm, TakesSquaresInDouble) {
  CpuStream stream;
  for (const float value : {1e30F, 1e-30F}) {
    const std::vector<float> x(100, value);
    double out = 0;
    squared_norm(stream, {.out = {&out, 1}, .x = view_of(x)});
    const double reference = 100 * static_cast<double>(value) * static_cast<double>(value);
    EXPECT_NEAR(out / reference, 1.0, 1e-13);
  }
}

TEST(SquaredNorm, ShowsANan) {
  CpuStream stream;
  auto x = normal_values(10007, 1);
  x[10003] = std::numeric_limits<float>::quiet_NaN();
  double out = 0;
  squared_norm(stream, {.out = {&out, 1}, .x = view_of(x)});
  EXPECT_TRUE(std::isnan(out));
}

TEST(Sum, MatchesTheReference) {
  for (const int64_t size : {0, 1, 15, 384, 100003}) {
    const auto x = normal_values(size, 1);
    double reference = 0;
    for (const float value : x) {
      reference += static_cast<double>(value);
    }
    const auto out = at_any_thread_count("sum", [&](CpuStream& stream) {
      Output one(1);
      sum(stream, {.out = one.view(), .x = view_of(x), .scale = 0.125});
      return one.values();
    });
    EXPECT_FLOAT_EQ(out[0], static_cast<float>(0.125 * reference)) << size;
  }
}

TEST(AddInto, IsTheFloatSumAtEveryAlignmentAndLength) {
  const auto to = normal_values(300, 1);
  const auto from = normal_values(300, 2);
  CpuStream stream;
  for (size_t offset = 0; offset < 17; ++offset) {
    for (const size_t length : {0U, 1U, 7U, 16U, 63U, 200U, 283U}) {
      Output out(to);
      const auto first = static_cast<int64_t>(offset);
      const auto last = static_cast<int64_t>(offset + length);
      add_into(stream, out.view().subview({first, last}),
               view_of(from).subview({300 - last, 300 - first}));
      auto expected = to;
      for (size_t i = 0; i < length; ++i) {
        expected[offset + i] += from[300 - offset - length + i];
      }
      expect_same_bits("sum", out.values(), expected);
    }
  }
}

TEST(AddInto, HasTheSameBitsAtAnyThreadCount) {
  const auto to = normal_values(300001, 1);
  const auto from = normal_values(300001, 2);
  at_any_thread_count("sum", [&](CpuStream& stream) {
    Output out(to);
    add_into(stream, out.view(), view_of(from));
    return out.values();
  });
}

}  // namespace
}  // namespace lockstep
