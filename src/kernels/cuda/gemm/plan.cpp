#include "kernels/cuda/gemm/plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/base/ceil_div.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

constexpr int64_t kSliceStep = 32;  // the deepest stage of any kernel
constexpr int64_t kSliceCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32};
// So many that the last one's idle multiprocessors are no reason to slice: blocks drift apart.
constexpr int64_t kManyWaves = 4;

// The portable ones first: they serve GPUs that have no wgmma.
constexpr std::array kSinglePrecision = {GemmKernel::kSimt128x128, GemmKernel::kSimt128x64,
                                         GemmKernel::kSimt64x64, GemmKernel::kSplit128x128,
                                         GemmKernel::kSplit128x96};
constexpr std::array kSimtUnaligned = {GemmKernel::kSimt64x64};
constexpr std::array kMmaUnaligned = {GemmKernel::kMma64x64};
constexpr std::array kTensorCores = {GemmKernel::kMma128x128,     GemmKernel::kMma128x64,
                                     GemmKernel::kMma64x64,       GemmKernel::kWgmma128x256,
                                     GemmKernel::kWgmma128x192,   GemmKernel::kWgmma128x128,
                                     GemmKernel::kWgmma128x96,    GemmKernel::kWgmma128x64,
                                     GemmKernel::kPingPong64x256, GemmKernel::kPingPong64x192};
constexpr std::array kTensorCoresForMnMajorA = {
    GemmKernel::kMma128x128,     GemmKernel::kMma128x64,      GemmKernel::kMma64x64,
    GemmKernel::kWgmmaMn128x256, GemmKernel::kWgmmaMn128x192, GemmKernel::kWgmmaMn128x128};
constexpr std::size_t kPortable = 3;

int64_t round_up(int64_t a, int64_t unit) {
  return ceil_div(a, unit) * unit;
}

// Of tiles at a time, where one block computes all that fall to its multiprocessor.
constexpr int64_t kAnyNumber = int64_t{1} << 30;

// What a kernel does on one multiprocessor. Fitted to the times of every plan of the shapes of
// `gemm_bench --model char` and `--model 124m` on an H200; what matters is which plan comes out as
// the fastest, and that holds on other GPUs as far as their multiprocessors are alike.
struct KernelSpeed {
  int64_t resident;     // blocks at a time
  bool crowds;          // behind a first wave: blocks come in `resident` to a multiprocessor again
  double rate;          // multiply-adds a microsecond, in units of 1e6, with endless blocks
  double half;          // blocks that reach half of that
  double filling;       // k whose time passes before the first and after the last stage
  double start_us;      // of a launch
  double k_major;       // more work for each K-major operand, as a fraction
  double sum_rate;      // bytes a microsecond, in units of 1e6, of the kernel that adds slices
  double sum_start_us;  // of its launch
};

KernelSpeed speed_of(GemmKernel kernel) {
  switch (kernel) {
    case GemmKernel::kSimt128x128:
      return {2, true, 0.245, 0.386, 5.61, 2.24, 0.081, 2.77, 2.58};
    case GemmKernel::kSimt128x64:
      return {4, false, 0.170, 0.142, 5.82, 2.60, 0.039, 7.54, 1.42};
    case GemmKernel::kSimt64x64:
      return {8, false, 0.183, 1.20, 11.1, 2.97, 0.036, 7.31, 0.707};
    case GemmKernel::kMma128x128:
      return {2, false, 0.865, 0.266, 205, 1.24, 0.015, 3.61, 0.246};
    case GemmKernel::kMma128x64:
      return {3, false, 0.681, 0.232, 86.4, 1.98, 0.009, 7.68, 2.08};
    case GemmKernel::kMma64x64:
      return {4, false, 0.584, 0.136, 64.9, 2.30, 0.023, 29.9, 2.06};
    case GemmKernel::kWgmma128x256:
      return {1, false, 2.365, 0.452, 243, 0.318, 0, 3.10, 0.436};
    case GemmKernel::kWgmma128x192:
      return {1, false, 3.073, 0.895, 292, 0.151, 0, 3.35, 0.561};
    case GemmKernel::kWgmma128x128:
      return {1, false, 3.015, 0.922, 327, 0.283, 0, 3.35, 0.278};
    case GemmKernel::kWgmma128x96:
      return {2, false, 1.489, 0.391, 165, 1.19, 0, 3.18, 0.686};
    case GemmKernel::kWgmma128x64:
      return {2, false, 1.229, 0.540, 129, 0.701, 0, 7.31, 4.33};
    case GemmKernel::kPingPong64x256:
      return {kAnyNumber, false, 1.303, 0.087, 55.4, 0.373, 0, 3.35, 0.5};
    case GemmKernel::kPingPong64x192:
      return {kAnyNumber, false, 1.400, 0.002, 109, 1.54, 0, 3.35, 0.5};
    case GemmKernel::kWgmmaMn128x256:
      return {1, false, 2.300, 0.452, 243, 0.318, 0, 3.10, 0.436};
    case GemmKernel::kWgmmaMn128x192:
      return {1, false, 2.900, 0.895, 292, 0.151, 0, 3.35, 0.561};
    case GemmKernel::kWgmmaMn128x128:
      return {1, false, 2.500, 0.922, 279, 0.283, 0, 3.35, 0.278};
    case GemmKernel::kSplit128x128:
      return {1, false, 0.480, 0, 108, 0.9, 0, 3.35, 0.5};
    case GemmKernel::kSplit128x96:
      return {1, false, 0.485, 0, 127, 1.15, 0, 3.35, 0.5};
  }
  throw InternalError("a kernel of {}", static_cast<int>(kernel));
}

// The largest of a plan's parts, as a product of its own.
GemmQuery part_query(const GemmPlan& plan, const GemmQuery& query) {
  GemmQuery part = query;
  part.k = plan.part_k > 0 ? plan.part_k : query.k;
  return part;
}

// Equal parts whose copies are at most kMostTransposed; the whole product if that fits.
GemmPlan parted_plan(GemmKernel kernel, const GemmQuery& query) {
  GemmPlan plan = {.kernel = kernel};
  const int64_t deepest = std::max(
      kMostTransposed / std::max<int64_t>(query.n, 1) / kSliceStep * kSliceStep, kSliceStep);
  if (copies_b(kernel, query) && query.n * query.k > kMostTransposed) {
    plan.part_k = round_up(ceil_div(query.k, ceil_div(query.k, deepest)), kSliceStep);
  }
  return plan;
}

// `part` is a part of the plan's product.
int64_t blocks_of(const GemmPlan& plan, const GemmQuery& part) {
  const GemmKernelFacts kernel = kernel_facts(plan.kernel);
  return ceil_div(part.m, kernel.tile_m) * ceil_div(part.n, kernel.tile_n) * plan.slices;
}

// Rounds of all the blocks that fit the machine at once, whole ones.
int64_t waves_of(const GemmPlan& plan, const GemmQuery& part, const CudaFacts& facts) {
  return blocks_of(plan, part) / (speed_of(plan.kernel).resident * facts.multiprocessors);
}

double transpose_microseconds(int64_t elements) {
  constexpr double kStart = 1.5;
  constexpr double kBytes = 4.0e6;  // a microsecond, read or written
  return kStart + static_cast<double>(2 * elements) * sizeof(float) / kBytes;
}

double column_sum_microseconds(int64_t elements) {
  constexpr double kStart = 3.5;
  constexpr double kBytes = 3.5e6;  // a microsecond
  return kStart + static_cast<double>(elements) * sizeof(float) / kBytes;
}

double sum_microseconds(const KernelSpeed& speed, int64_t sums, int64_t elements) {
  return speed.sum_start_us +
         static_cast<double>((sums + 1) * elements) * sizeof(float) / (speed.sum_rate * 1e6);
}

// Of one part, operands as the kernel reads them.
double product_microseconds(const GemmPlan& plan, const GemmQuery& part, const CudaFacts& facts) {
  const KernelSpeed speed = speed_of(plan.kernel);
  const GemmKernelFacts kernel = kernel_facts(plan.kernel);
  const int k_major_operands =
      (part.trans_a == Transpose::kNo ? 1 : 0) + (part.trans_b == Transpose::kYes ? 1 : 0);
  // Tiles of b that reach beyond it take blocks that stay twice as long.
  const double beyond = speed.resident == kAnyNumber && part.n % kernel.tile_n != 0 ? 2 : 1;
  const double work = beyond * static_cast<double>(kernel.tile_m * kernel.tile_n) *
                      (static_cast<double>(plan.slice_depth) + speed.filling) *
                      (1 + speed.k_major * k_major_operands) * 1e-6;
  // A multiprocessor takes as many blocks at a time as are resident, which then share its rate.
  const auto together = [&](int64_t count) {
    return work * (static_cast<double>(count) + speed.half) / speed.rate;
  };
  const int64_t waves = waves_of(plan, part, facts);
  int64_t rest = ceil_div(blocks_of(plan, part) - waves * speed.resident * facts.multiprocessors,
                          facts.multiprocessors);
  if (speed.crowds && waves > 0 && rest > 0) {
    rest = speed.resident;
  }
  const double sums = plan.slices > 1 ? sum_microseconds(speed, plan.slices, part.m * part.n) : 0.0;
  return speed.start_us + static_cast<double>(waves) * together(speed.resident) +
         (rest > 0 ? together(rest) : 0.0) + sums;
}

}  // namespace

GemmKernelFacts kernel_facts(GemmKernel kernel) {
  switch (kernel) {
    case GemmKernel::kSimt128x128:
      return {"simt 128x128", 128, 128, false};
    case GemmKernel::kSimt128x64:
      return {"simt 128x64", 128, 64, false};
    case GemmKernel::kSimt64x64:
      return {"simt 64x64", 64, 64, false};
    case GemmKernel::kMma128x128:
      return {"mma 128x128", 128, 128, false};
    case GemmKernel::kMma128x64:
      return {"mma 128x64", 128, 64, false};
    case GemmKernel::kMma64x64:
      return {"mma 64x64", 64, 64, false};
    case GemmKernel::kWgmma128x256:
      return {"wgmma 128x256", 128, 256, true, ReadsA::kKMajor};
    case GemmKernel::kWgmma128x192:
      return {"wgmma 128x192", 128, 192, true, ReadsA::kKMajor};
    case GemmKernel::kWgmma128x128:
      return {"wgmma 128x128", 128, 128, true, ReadsA::kKMajor};
    case GemmKernel::kWgmma128x96:
      return {"wgmma 128x96", 128, 96, true, ReadsA::kKMajor};
    case GemmKernel::kWgmma128x64:
      return {"wgmma 128x64", 128, 64, true, ReadsA::kKMajor};
    case GemmKernel::kPingPong64x256:
      return {"pingpong 64x256", 64, 256, true, ReadsA::kKMajor};
    case GemmKernel::kPingPong64x192:
      return {"pingpong 64x192", 64, 192, true, ReadsA::kKMajor};
    case GemmKernel::kWgmmaMn128x256:
      return {"wgmma 128x256, a MN-major", 128, 256, true, ReadsA::kMnMajor};
    case GemmKernel::kWgmmaMn128x192:
      return {"wgmma 128x192, a MN-major", 128, 192, true, ReadsA::kMnMajor};
    case GemmKernel::kWgmmaMn128x128:
      return {"wgmma 128x128, a MN-major", 128, 128, true, ReadsA::kMnMajor};
    case GemmKernel::kSplit128x128:
      return {"split 128x128", 128, 128, true};
    case GemmKernel::kSplit128x96:
      return {"split 128x96", 128, 96, true};
  }
  throw InternalError("a kernel of {}", static_cast<int>(kernel));
}

GemmQuery swapped_query(const GemmQuery& query) {
  GemmQuery swapped = query;
  std::swap(swapped.m, swapped.n);
  return swapped;
}

bool can_swap(GemmKernel kernel, const GemmQuery& query) {
  return query.plain && query.trans_a == Transpose::kYes && copies_b(kernel, query);
}

bool takes_a(GemmKernel kernel, const GemmQuery& query) {
  const ReadsA reads = kernel_facts(kernel).a;
  return reads == ReadsA::kAny || (reads == ReadsA::kKMajor) == (query.trans_a == Transpose::kNo);
}

bool takes_unaligned(GemmKernel kernel) {
  return kernel == GemmKernel::kSimt64x64 || kernel == GemmKernel::kMma64x64;
}

bool copies_b(GemmKernel kernel, const GemmQuery& query) {
  return kernel_facts(kernel).of_parts && query.trans_b == Transpose::kNo;
}

std::span<const GemmKernel> kernels_for(const GemmQuery& query, Precision precision,
                                        const CudaFacts& facts) {
  const bool fp32 = precision == Precision::kFp32;
  if (!query.aligned) {
    return fp32 ? kSimtUnaligned : kMmaUnaligned;
  }
  const std::span<const GemmKernel> tensor_cores = query.trans_a == Transpose::kNo
                                                       ? std::span<const GemmKernel>(kTensorCores)
                                                       : kTensorCoresForMnMajorA;
  const std::span<const GemmKernel> all =
      fp32 ? std::span<const GemmKernel>(kSinglePrecision) : tensor_cores;
  // A transposed copy has rows of its own, which must be aligned too.
  const bool wgmma = facts.compute_capability == 90 && query.k % 4 == 0 && query.k > 0;
  return wgmma ? all : all.first(kPortable);
}

GemmPlan sliced_plan(GemmKernel kernel, int64_t k, int64_t slices) {
  if (slices <= 1 || k <= kSliceStep) {
    return {kernel, 1, k};
  }
  const int64_t depth = round_up(ceil_div(k, slices), kSliceStep);
  return {kernel, ceil_div(k, depth), depth};
}

int64_t transposed_elements(const GemmPlan& plan, const GemmQuery& of) {
  const GemmQuery query = plan.swapped ? swapped_query(of) : of;
  return copies_b(plan.kernel, query) ? query.n * part_query(plan, query).k : 0;
}

double plan_microseconds(const GemmPlan& plan, const GemmQuery& of, const CudaFacts& facts) {
  const GemmQuery query = plan.swapped ? swapped_query(of) : of;
  const GemmQuery part = part_query(plan, query);
  double time = product_microseconds(plan, part, facts);
  if (copies_b(plan.kernel, query)) {
    time += transpose_microseconds(part.k * part.n);
  }
  const int64_t depths = std::max<int64_t>(ceil_div(query.k, std::max<int64_t>(part.k, 1)), 1);
  time *= static_cast<double>(depths);
  if (depths > 1 || (plan.swapped && plan.slices == 1)) {
    time += sum_microseconds(speed_of(plan.kernel), depths, query.m * query.n);
  }
  if (of.a_sums && !kernel_facts(plan.kernel).of_parts) {
    time += column_sum_microseconds(of.m * of.k);
  }
  return time;
}

GemmPlan plan_gemm(const GemmQuery& query, Precision precision, const CudaFacts& facts) {
  GemmPlan best;
  double best_time = std::numeric_limits<double>::infinity();
  const auto consider = [&](const GemmPlan& plan) {
    const double time = plan_microseconds(plan, query, facts);
    if (time < best_time) {
      best_time = time;
      best = plan;
    }
  };
  const auto consider_all = [&](GemmKernel kernel, const GemmQuery& of, bool swapped) {
    GemmPlan plan = parted_plan(kernel, of);
    plan.swapped = swapped;
    const GemmQuery part = part_query(plan, of);
    const bool slice = waves_of(plan, part, facts) < kManyWaves;
    for (const int64_t slices : kSliceCounts) {
      const GemmPlan sliced = sliced_plan(kernel, part.k, slices);
      plan.slices = sliced.slices;
      plan.slice_depth = sliced.slice_depth;
      consider(plan);
      if (!slice) {
        break;
      }
    }
  };
  for (const GemmKernel kernel : kernels_for(query, precision, facts)) {
    consider_all(kernel, query, false);
    if (can_swap(kernel, query)) {
      consider_all(kernel, swapped_query(query), true);
    }
  }
  return best;
}

}  // namespace lockstep
