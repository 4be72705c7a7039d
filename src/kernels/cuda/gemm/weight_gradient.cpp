#include "kernels/cuda/gemm/weight_gradient.h"

#include "kernels/check_size.h"
#include "kernels/cuda/gemm/planned_gemm.h"
#include "kernels/cuda/gemm/problem.h"
#include "kernels/cuda/ops.h"

namespace lockstep {
namespace {

using namespace cuda;

void check_norm(const WeightGradient<CudaDevice>& args) {
  check_size("weight_gradient: mean", args.norm->mean.size(), args.rows);
  check_size("weight_gradient: rstd", args.norm->rstd.size(), args.rows);
  check_size("weight_gradient: gamma", args.norm->gamma.size(), args.in);
  check_size("weight_gradient: beta", args.norm->beta.size(), args.in);
  check_size("weight_gradient: memory", args.norm->memory.size(), args.rows * args.in);
}

// By a pass of its own, which takes mean and rstd anew.
CudaView<const float> output_of_norm(CudaStream& stream, const WeightGradient<CudaDevice>& args) {
  const CudaView<float> again = stream.scratch<float>(2 * args.rows);
  layernorm_forward(stream, {.rows = args.rows,
                             .channels = args.in,
                             .y = args.norm->memory,
                             .mean = again.subview({0, args.rows}),
                             .rstd = again.subview({args.rows, 2 * args.rows}),
                             .x = args.x,
                             .gamma = args.norm->gamma,
                             .beta = args.norm->beta});
  return args.norm->memory;
}

}  // namespace

Gemm<CudaDevice> product_of(const WeightGradient<CudaDevice>& args) {
  return {.m = args.out,
          .n = args.in,
          .k = args.rows,
          .trans_a = Transpose::kYes,
          .a = args.dy,
          .b = args.x,
          .c = args.weight,
          .accumulate = args.accumulate};
}

void weight_gradient_by_plan(CudaStream& stream, const WeightGradient<CudaDevice>& args,
                             const GemmPlan& plan) {
  Gemm<CudaDevice> problem = product_of(args);
  check_product(problem);
  check_size("weight_gradient: bias", args.bias.size(), args.out);
  if (args.norm) {
    check_norm(args);
  }
  if (problem.m == 0) {
    return;
  }
  const bool sums_beside = problem.n > 0 && kernel_facts(plan.kernel).wgmma;
  if (!sums_beside) {
    column_sum(stream, {.rows = args.rows,
                        .columns = args.out,
                        .out = args.bias,
                        .in = args.dy,
                        .accumulate = args.accumulate});
  }
  if (problem.n == 0) {
    return;
  }
  OnTheWay on_the_way;
  if (sums_beside) {
    on_the_way.a_sums = args.bias.subview({0, args.out});
  }
  const bool copied = copies_b(plan.kernel, query_of(problem)) && !plan.swapped;
  if (args.norm && copied && aligned(args.norm->gamma) && aligned(args.norm->beta)) {
    on_the_way.b_norm = {args.norm->mean.data(), args.norm->rstd.data(), args.norm->gamma.data(),
                         args.norm->beta.data()};
  } else if (args.norm) {
    problem.b = output_of_norm(stream, args);
  }
  run_gemm(stream, problem, plan, on_the_way);
}

void weight_gradient(CudaStream& stream, const WeightGradient<CudaDevice>& args) {
  GemmQuery query = query_of(product_of(args));
  query.aligned = query.aligned && (!args.norm || aligned(args.norm->memory));
  query.a_sums = true;
  weight_gradient_by_plan(stream, args, plan_gemm(query, stream.precision(), stream.facts()));
}

}  // namespace lockstep
