#pragma once

#include <cstdint>
#include <span>

#include "core/device/cuda_facts.h"
#include "kernels/cuda/gemm/kernel.h"
#include "kernels/gemm.h"

namespace lockstep {

/// What a plan is made from.
struct GemmQuery {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Transpose trans_a = Transpose::kNo;
  Transpose trans_b = Transpose::kNo;
  bool aligned = true;  ///< every row of every operand starts at a multiple of 16 bytes
  bool plain = true;    ///< nothing follows the product but perhaps its addition to c
  bool a_sums = false;  ///< the sums of a's rows are wanted too
};

/// How a product is computed: by which kernel, and k in how many slices, whose sums are added in
/// their order by a second kernel. A b that the kernel cannot read as it lies is transposed into
/// scratch memory first, whole or, to take less memory, one part of k after the other, whose sums
/// are added as those of slices are.
struct GemmPlan {
  GemmKernel kernel = GemmKernel::kSimt64x64;
  int64_t slices = 1;       ///< of a part's k
  int64_t slice_depth = 0;  ///< of k; a multiple of 32 when there are several slices
  int64_t part_k = 0;       ///< a multiple of 32; 0: all of k
  /// Of an MN-major a and b, computes cᵀ = bᵀ · a and transposes that: the kernels that read an
  /// MN-major a as it lies are then given a transposed copy of a, and not of b. All above is of
  /// that product. For products without features but `accumulate`.
  bool swapped = false;

  friend bool operator==(const GemmPlan&, const GemmPlan&) = default;
};

/// `query` of the product that a swapped plan computes.
GemmQuery swapped_query(const GemmQuery& query);

/// Whether a plan for `query` by this kernel may be swapped.
bool can_swap(GemmKernel kernel, const GemmQuery& query);

/// Whether a kernel can read a as it lies. No plan copies a.
bool takes_a(GemmKernel kernel, const GemmQuery& query);

/// Whether a kernel can compute products whose rows are not aligned.
bool takes_unaligned(GemmKernel kernel);

/// Whether a kernel cannot read b as it lies, so that it is given a transposed copy.
bool copies_b(GemmKernel kernel, const GemmQuery& query);

/// The kernels that can compute `query` on the GPU, in that precision.
std::span<const GemmKernel> kernels_for(const GemmQuery& query, Precision precision,
                                        const CudaFacts& facts);

/// k in `slices` parts, or in fewer when that leaves one empty.
GemmPlan sliced_plan(GemmKernel kernel, int64_t k, int64_t slices);

/// The most that a product transposes at a time, in elements: 512 MiB. Smaller parts would leave
/// multiprocessors idle.
inline constexpr int64_t kMostTransposed = int64_t{1} << 27;

/// What a plan's transposed copy takes, in elements.
int64_t transposed_elements(const GemmPlan& plan, const GemmQuery& query);

/// The time that the model of a multiprocessor in plan.cpp predicts.
double plan_microseconds(const GemmPlan& plan, const GemmQuery& query, const CudaFacts& facts);

/// The plan that is predicted to be the fastest, of those that transpose no more than
/// kMostTransposed.
GemmPlan plan_gemm(const GemmQuery& query, Precision precision, const CudaFacts& facts);

}  // namespace lockstep
