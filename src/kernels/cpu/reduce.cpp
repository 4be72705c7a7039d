#include "kernels/reduce.h"

#include <numeric>
#include <vector>

#include "kernels/check_size.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce_isa.h"
#include "kernels/segment_norms.h"

namespace lockstep {
namespace {

constexpr int64_t kBlock = 32768;
constexpr int64_t kRowBlock = 128;

}  // namespace

void column_sum(CpuStream& stream, const ColumnSum<CpuDevice>& args) {
  static const auto kSumRows = LOCKSTEP_SELECT_ISA(sum_rows);
  static const auto kAdd = LOCKSTEP_SELECT_ISA(add_range);
  static const auto kPut = LOCKSTEP_SELECT_ISA(put);
  const int64_t columns = args.columns;
  check_size("column_sum: in", args.in.size(), args.rows * columns);
  check_size("column_sum: out", args.out.size(), columns);
  // One row of sums for each block of rows; at least one, of zeros, when there are no rows.
  const int64_t blocks = args.rows > kRowBlock ? (args.rows + kRowBlock - 1) / kRowBlock : 1;
  std::vector<float> sums(static_cast<size_t>(blocks * columns));
  parallel_for_blocks(stream.threads(), args.rows, kRowBlock, [&](int64_t begin, int64_t count) {
    kSumRows(count, columns, sums.data() + begin / kRowBlock * columns,
             args.in.data() + begin * columns);
  });
  for (int64_t block = 1; block < blocks; ++block) {
    kAdd(columns, sums.data(), sums.data(), sums.data() + block * columns);
  }
  kPut(args.accumulate, columns, args.out.data(), sums.data());
}

void squared_norm(CpuStream& stream, const SquaredNorm<CpuDevice>& args) {
  const SegmentSums layout{args.x.size()};
  std::vector<double> sums(static_cast<size_t>(layout.size()));
  const CpuView<double> view(sums.data(), layout.size());
  segment_norms(stream, {.sums = view, .x = args.x});
  norm_of_segments(stream, {.out = args.out, .sums = view, .layout = layout});
}

void sum(CpuStream& stream, const Sum<CpuDevice>& args) {
  static const auto kRange = LOCKSTEP_SELECT_ISA(sum_range);
  check_size("sum: out", args.out.size(), 1);
  // The blocks' sums in block order.
  std::vector<double> sums(static_cast<size_t>((args.x.size() + kBlock - 1) / kBlock));
  parallel_for_blocks(stream.threads(), args.x.size(), kBlock, [&](int64_t begin, int64_t count) {
    sums[static_cast<size_t>(begin / kBlock)] = kRange(count, args.x.data() + begin);
  });
  args.out[0] = static_cast<float>(args.scale * std::accumulate(sums.begin(), sums.end(), 0.0));
}

void add_into(CpuStream& stream, CpuView<float> to, CpuView<const float> from) {
  static const auto kAdd = LOCKSTEP_SELECT_ISA(add_range);
  check_size("add_into: from", from.size(), to.size());
  parallel_for_blocks(stream.threads(), to.size(), kBlock, [&](int64_t begin, int64_t count) {
    kAdd(count, to.data() + begin, to.data() + begin, from.data() + begin);
  });
}

}  // namespace lockstep
