#include "kernels/cuda/gemm/scratch.h"

#include "kernels/cuda/gemm/transposed_copy.h"

namespace lockstep {

bool finishes_at_once(const GemmQuery& query, const GemmPlan& plan, bool fused) {
  const bool parts = parts_of_k(query, plan) > 1;
  const bool transposed = plan.swapped && !parts;
  return plan.slices == 1 && !transposed && (parts || fused);
}

int64_t a_sum_runs(const GemmPlan& plan, int64_t depth) {
  return plan.swapped ? cuda::transpose_sum_rows(depth)
                      : sliced_plan(plan.kernel, depth, plan.slices).slices;
}

GemmScratch gemm_scratch(const GemmQuery& query, const GemmPlan& plan, bool fused) {
  const GemmQuery computed = plan.swapped ? swapped_query(query) : query;
  const int64_t depth = part_depth(query, plan);
  const int64_t parts = parts_of_k(query, plan);
  const int64_t size = computed.m * computed.n;
  GemmScratch scratch;
  if (parts > 1) {
    scratch.sums = parts * size;
  }
  if (!finishes_at_once(query, plan, fused)) {
    // Each piece starts at a multiple of 16 bytes: with aligned rows sizes are multiples of four.
    scratch.partials = ceil_div(plan.slices * size, 4) * 4;
  }
  if (copies_b(plan.kernel, computed)) {
    scratch.b = depth * computed.n;
  }
  if (query.a_sums && kernel_facts(plan.kernel).wgmma) {
    const int64_t last = query.k - (parts - 1) * depth;
    scratch.a_partials = ((parts - 1) * a_sum_runs(plan, depth) + a_sum_runs(plan, last)) * query.m;
  }
  return scratch;
}

}  // namespace lockstep
