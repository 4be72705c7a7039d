#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/device/cuda_facts.h"
#include "kernels/gemm.h"

namespace lockstep {

/// The kernels that a product can be computed by: a family, and how much of c a block computes.
/// Larger tiles read less for each product; smaller ones give every multiprocessor something to do.
enum class GemmKernel : uint8_t {
  kSimt128x128,  ///< fp32
  kSimt128x64,
  kSimt64x64,
  kMma128x128,  ///< TF32, mma.sync: any GPU from sm_80
  kMma128x64,
  kMma64x64,
  kWgmma128x256,  ///< TF32, wgmma: sm_90, K-major operands of aligned rows
  kWgmma128x192,
  kWgmma128x128,
  kWgmma128x96,
  kWgmma128x64,
  kPingPong64x256,  ///< as above, by blocks that stay for several tiles
  kPingPong64x192,
  kWgmmaMn128x256,  ///< TF32, wgmma: sm_90, as above, but an MN-major a
  kWgmmaMn128x192,
  kWgmmaMn128x128,
  kSplit128x128,  ///< fp32, wgmma of factors split in two: sm_90, as above, a of any major
  kSplit128x96,
};

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

/// Which a a kernel can read as it lies.
enum class ReadsA : uint8_t { kAny, kKMajor, kMnMajor };

/// What a plan needs to know of a kernel.
struct GemmKernelFacts {
  std::string_view name;
  int64_t tile_m;
  int64_t tile_n;
  bool of_parts;  ///< wgmma: can compute a part of a product, and the sums of a's rows with it
  ReadsA a = ReadsA::kAny;
};
GemmKernelFacts kernel_facts(GemmKernel kernel);

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
