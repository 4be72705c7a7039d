#pragma once

#include <cstdint>

#include "core/base/ceil_div.h"
#include "kernels/cuda/gemm/plan.h"

namespace lockstep {

/// Elements of scratch memory that a product takes, in the order in which they lie there. m and n
/// are those of the product as it is computed, swapped if the plan is.
struct GemmScratch {
  int64_t sums = 0;        ///< (parts of k, m, n), when there are several
  int64_t partials = 0;    ///< (slices of a part, m, n), for a kernel that adds and finishes them
  int64_t b = 0;           ///< (n, depth of a part): its b, transposed
  int64_t a_partials = 0;  ///< (runs of k, columns): sums of the caller's a

  int64_t total() const { return sums + partials + b + a_partials; }
};

/// Of a product by `plan`. `fused`: what follows it, if anything does, is fused into the kernel.
GemmScratch gemm_scratch(const GemmQuery& query, const GemmPlan& plan, bool fused);

/// Whether the kernel of a part leaves nothing to be done to what it computes.
bool finishes_at_once(const GemmQuery& query, const GemmPlan& plan, bool fused);

/// The depth of a part of k.
inline int64_t part_depth(const GemmQuery& query, const GemmPlan& plan) {
  return plan.part_k > 0 ? plan.part_k : query.k;
}
inline int64_t parts_of_k(const GemmQuery& query, const GemmPlan& plan) {
  const int64_t depth = part_depth(query, plan);
  return depth > 0 ? ceil_div(query.k, depth) : 1;
}

/// Into how many runs the sums of the caller's a over `depth` of k are divided: by that copy, or by
/// the kernel.
int64_t a_sum_runs(const GemmPlan& plan, int64_t depth);

}  // namespace lockstep
