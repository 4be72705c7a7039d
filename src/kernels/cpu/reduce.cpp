#include "kernels/reduce.h"

#include <vector>

namespace lockstep {

void column_sum(CpuStream& /*stream*/, const ColumnSum<CpuDevice>& args) {
  std::vector<float> sums(static_cast<size_t>(args.columns));
  for (int64_t row = 0; row < args.rows; ++row) {
    for (int64_t c = 0; c < args.columns; ++c) {
      sums[static_cast<size_t>(c)] += args.in[row * args.columns + c];
    }
  }
  for (int64_t c = 0; c < args.columns; ++c) {
    const float finished = sums[static_cast<size_t>(c)];
    args.out[c] = args.accumulate ? args.out[c] + finished : finished;
  }
}

void squared_norm(CpuStream& /*stream*/, const SquaredNorm<CpuDevice>& args) {
  double total = 0;
  for (const float x : args.x) {
    total += static_cast<double>(x) * static_cast<double>(x);
  }
  args.out[0] = total;
}

void sum(CpuStream& /*stream*/, const Sum<CpuDevice>& args) {
  double total = 0;
  for (const float x : args.x) {
    total += static_cast<double>(x);
  }
  args.out[0] = static_cast<float>(args.scale * total);
}

void add_into(CpuStream& /*stream*/, CpuView<float> to, CpuView<const float> from) {
  for (int64_t i = 0; i < to.size(); ++i) {
    to[i] += from[i];
  }
}

}  // namespace lockstep
