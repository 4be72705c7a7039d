// The table against the printf formats of nccl-tests: what reads the one must read the other.
#include "nccl_tests_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace lockstep {
namespace {

Timing timing_of(double time) {
  Timing timing;
  timing.time = time;
  return timing;
}

/// A row by the formats of nccl-tests: "%12li  %12li  %8s  %6s  %6s" with a root of "%6i", and for
/// each placement "  %7s  %6s  %6s" with "  %6g" or "    N/A", and with -I "  %7s  %7s  %7s  %7s".
std::string row_by_printf(int64_t bytes, const char* out_of_place, const char* in_place) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), "%12li  %12li  %8s  %6s  %6i%s%s\n", bytes, bytes / 4,
                "float", "sum", -1, out_of_place, in_place);
  return line.data();
}

std::string cells_by_printf(const char* time, const char* algbw, const char* busbw, double wrong) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "  %7s  %6s  %6s  %6g", time, algbw, busbw, wrong);
  return text.data();
}

TEST(NcclTestsTable, GivesItsRow) {
  EXPECT_EQ(table_row({}, 536870912, 8, timing_of(10052.4), timing_of(9676.9)),
            "   536870912     134217728     float     sum      -1"
            "  10052.4   53.41   93.46       0  9676.90   55.48   97.09       0\n");
}

TEST(NcclTestsTable, ShowsEachRanksDevice) {
  EXPECT_EQ(device_cell("0000:0F:00.0", "NVIDIA H200"), "[0000:0f:00] NVIDIA H200");
  EXPECT_EQ(device_cell("", "CPU"), "[0000:00:00] CPU");
  PeerTable peers(2);
  peers[1].rank = 1;
  peers[1].pid = 77;
  peers[1].host = "node";
  peers[1].local_rank = 1;
  const std::string text = table_preamble({}, peers, {"[a] A", "[b] B"});
  EXPECT_NE(text.find("#  Rank  1 Group  0 Pid     77 on       node device  1 [b] B\n"),
            std::string::npos)
      << text;
}

TEST(NcclTestsTable, GivesItsHeader) {
  EXPECT_EQ(
      table_header(false),
      "#\n"
      "#                                                              out-of-place            "
      "           in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong  "
      "   time   algbw   busbw  #wrong \n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)          "
      "   (us)  (GB/s)  (GB/s)         \n");
}

TEST(NcclTestsTable, FitsNumbersOfEverySizeIntoItsColumns) {
  struct Case {
    double time;
    const char* text;  ///< of the time, in 7 characters
  };
  for (const Case& each :
       {Case{0.5, "   0.50"}, Case{9.999, "  10.00"}, Case{1234.56, "1234.56"},
        Case{9999.99, "9999.99"}, Case{10052.04, "10052.0"}, Case{123456.7, " 123457"},
        Case{1234567.8, "1234568"}, Case{12345678.0, "1.2e+07"}}) {
    const std::string row = table_row({}, 0, 2, timing_of(each.time), timing_of(each.time));
    const std::string cells = cells_by_printf(each.text, "  0.00", "  0.00", 0);
    EXPECT_EQ(row, row_by_printf(0, cells.c_str(), cells.c_str())) << each.time;
  }
  // 4 GB in 1 us, and in 10 ns: bandwidths in 6 characters.
  const std::string wide = cells_by_printf("   1.00", "4000.0", "4000.0", 0);
  const std::string wider = cells_by_printf("   0.01", "400000", "400000", 0);
  EXPECT_EQ(table_row({}, 4000000, 2, timing_of(1), timing_of(0.01)),
            row_by_printf(4000000, wide.c_str(), wider.c_str()));
}

TEST(NcclTestsTable, CountsWrongElementsAndSaysWhenNobodyLooked) {
  Timing wrong = timing_of(100);
  wrong.wrong = 37;
  Timing many = timing_of(100);
  many.wrong = 12345678;
  EXPECT_EQ(table_row({}, 1000, 2, wrong, many),
            "        1000           250     float     sum      -1"
            "   100.00    0.01    0.01      37   100.00    0.01    0.01  1.23457e+07\n");
  TableOptions unchecked;
  unchecked.check = false;
  EXPECT_EQ(table_row(unchecked, 1000, 2, timing_of(100), timing_of(100)),
            "        1000           250     float     sum      -1"
            "   100.00    0.01    0.01    N/A   100.00    0.01    0.01    N/A\n");
}

TEST(NcclTestsTable, AddsTheColumnsOfSingleIterations) {
  TableOptions options;
  options.per_iteration = true;
  const Timing timing = {.time = 2, .least = 1, .most = 30000, .p99 = 29.5, .variation = 12.345};
  const std::string cells =
      cells_by_printf("   2.00", "  1.00", "  1.00", 0) + "     1.00  30000.0    29.50    12.35";
  EXPECT_EQ(table_row(options, 2000, 2, timing, timing),
            row_by_printf(2000, cells.c_str(), cells.c_str()));
}

TEST(NcclTestsTable, EndsWithTheVerdictAndTheAverage) {
  EXPECT_EQ(table_footer(0, 95.275),
            "# Out of bounds values : 0 OK\n"
            "# Avg bus bandwidth    : 95.275 \n"
            "#\n# Collective test concluded: all_reduce_bench\n");
  EXPECT_EQ(table_footer(6, 1).substr(0, 34), "# Out of bounds values : 6 FAILED\n");
}

TEST(NcclTestsTable, SummarizesTimes) {
  const Timing odd = summarize({30, 10, 20});
  EXPECT_EQ(odd.time, 20);
  EXPECT_EQ(odd.least, 10);
  EXPECT_EQ(odd.most, 30);
  EXPECT_EQ(odd.p99, 30);
  EXPECT_NEAR(odd.variation, 40.8248, 1e-4);
  EXPECT_EQ(summarize({4, 1, 2, 3}).time, 2.5);
}

TEST(NcclTestsTable, CountsBandwidthsInDecimalUnits) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(2000000000, 1e6), 2);
  EXPECT_DOUBLE_EQ(bus_bandwidth(2000000000, 1e6, 2), 2);
  EXPECT_DOUBLE_EQ(bus_bandwidth(2000000000, 1e6, 8), 3.5);
}

}  // namespace
}  // namespace lockstep
