#include "kernels/weight_gradient.h"

#include <vector>

#include "kernels/check_size.h"
#include "kernels/gemm.h"
#include "kernels/layernorm.h"
#include "kernels/reduce.h"

namespace lockstep {
namespace {

// Takes mean and rstd anew: those passes over a row leave it in the cache for the one that is
// wanted.
CpuView<const float> output_of(CpuStream& stream, const WeightGradient<CpuDevice>& args) {
  check_size("weight_gradient: memory", args.norm->memory.size(), args.rows * args.in);
  std::vector<float> mean(static_cast<size_t>(args.rows));
  std::vector<float> rstd(static_cast<size_t>(args.rows));
  layernorm_forward(stream, {.rows = args.rows,
                             .channels = args.in,
                             .y = args.norm->memory,
                             .mean = {mean.data(), args.rows},
                             .rstd = {rstd.data(), args.rows},
                             .x = args.x,
                             .gamma = args.norm->gamma,
                             .beta = args.norm->beta});
  return args.norm->memory;
}

}  // namespace

void weight_gradient(CpuStream& stream, const WeightGradient<CpuDevice>& args) {
  column_sum(stream, {.rows = args.rows,
                      .columns = args.out,
                      .out = args.bias,
                      .in = args.dy,
                      .accumulate = args.accumulate});
  gemm(stream, {.m = args.out,
                .n = args.in,
                .k = args.rows,
                .trans_a = Transpose::kYes,
                .a = args.dy,
                .b = args.norm ? output_of(stream, args) : args.x,
                .c = args.weight,
                .accumulate = args.accumulate});
}

}  // namespace lockstep
