#include "kernels/cuda/gemm/plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/base/ceil_div.h"
#include "kernels/cuda/gemm/kernel_speed.h"

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
  return blocks_of(plan, part) / (kernel_facts(plan.kernel).resident * facts.multiprocessors);
}

// This and the next fitted on the same H200 as the speeds of kernels (kernel_speed.h).
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
  const double beyond = kernel.resident == kAnyNumber && part.n % kernel.tile_n != 0 ? 2 : 1;
  const double work = beyond * static_cast<double>(kernel.tile_m * kernel.tile_n) *
                      (static_cast<double>(plan.slice_depth) + speed.filling) *
                      (1 + speed.k_major * k_major_operands) * 1e-6;
  // A multiprocessor takes as many blocks at a time as are resident, which then share its rate.
  const auto together = [&](int64_t count) {
    return work * (static_cast<double>(count) + speed.half) / speed.rate;
  };
  const int64_t waves = waves_of(plan, part, facts);
  int64_t rest = ceil_div(blocks_of(plan, part) - waves * kernel.resident * facts.multiprocessors,
                          facts.multiprocessors);
  if (speed.crowds && waves > 0 && rest > 0) {
    rest = kernel.resident;
  }
  const double sums = plan.slices > 1 ? sum_microseconds(speed, plan.slices, part.m * part.n) : 0.0;
  return speed.start_us + static_cast<double>(waves) * together(kernel.resident) +
         (rest > 0 ? together(rest) : 0.0) + sums;
}

}  // namespace

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
  return kernel_facts(kernel).wgmma && query.trans_b == Transpose::kNo;
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
  if (of.a_sums && !kernel_facts(plan.kernel).wgmma) {
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
