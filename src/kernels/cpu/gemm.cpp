#include "kernels/gemm.h"

#include <algorithm>

#include "core/base/error.h"
#include "kernels/cpu/gemm_isa.h"
#include "kernels/cpu/gemm_plan.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/scratch.h"

namespace lockstep {
namespace {

struct Kernels {
  decltype(&portable::gemm_scratch_size) scratch_size;
  decltype(&portable::gemm_rectangle) rectangle;
  decltype(&portable::gemm_sum_parts) sum_parts;
};

const Kernels& kernels() {
  static const Kernels chosen = {LOCKSTEP_SELECT_ISA(gemm_scratch_size),
                                 LOCKSTEP_SELECT_ISA(gemm_rectangle),
                                 LOCKSTEP_SELECT_ISA(gemm_sum_parts)};
  return chosen;
}

void check(const Gemm<CpuDevice>& problem) {
  const int64_t m = problem.m;
  const int64_t n = problem.n;
  const int64_t k = problem.k;
  LOCKSTEP_CHECK(m >= 0 && n >= 0 && k >= 0, "a product of m={}, n={}, k={}", m, n, k);
  LOCKSTEP_CHECK(problem.a.size() >= m * k, "a has {} elements; m={}, k={}", problem.a.size(), m,
                 k);
  LOCKSTEP_CHECK(problem.b.size() >= k * n, "b has {} elements; k={}, n={}", problem.b.size(), k,
                 n);
  LOCKSTEP_CHECK(problem.c.size() >= m * n, "c has {} elements; m={}, n={}", problem.c.size(), m,
                 n);
  LOCKSTEP_CHECK(problem.bias.empty() || problem.bias.size() >= n, "bias has {} elements; n={}",
                 problem.bias.size(), n);
  for (const CpuView<const float> matrix :
       {problem.residual, CpuView<const float>(problem.gelu_derivative), problem.factor}) {
    LOCKSTEP_CHECK(matrix.empty() || matrix.size() >= m * n,
                   "a matrix of the epilogue has {} elements; m={}, n={}", matrix.size(), m, n);
  }
  LOCKSTEP_CHECK(problem.gelu_derivative.empty() || problem.gelu.has_value(),
                 "gelu_derivative without gelu");
}

// An empty view is a step left out, wherever it points.
template <class T>
T* data_or_null(CpuView<T> view) {
  return view.empty() ? nullptr : view.data();
}

GemmProduct product_of(const Gemm<CpuDevice>& problem) {
  GemmProduct product;
  product.m = problem.m;
  product.n = problem.n;
  product.k = problem.k;
  product.a = problem.trans_a == Transpose::kYes ? GemmOperand{problem.a.data(), 1, problem.m}
                                                 : GemmOperand{problem.a.data(), problem.k, 1};
  product.b = problem.trans_b == Transpose::kYes ? GemmOperand{problem.b.data(), 1, problem.k}
                                                 : GemmOperand{problem.b.data(), problem.n, 1};
  product.c = problem.c.data();
  product.epilogue = {.bias = data_or_null(problem.bias),
                      .residual = data_or_null(problem.residual),
                      .gelu = problem.gelu,
                      .gelu_derivative = data_or_null(problem.gelu_derivative),
                      .factor = data_or_null(problem.factor),
                      .accumulate = problem.accumulate};
  return product;
}

// Scratch of different threads shares no page.
constexpr int64_t kPage = 1024;
int64_t whole_pages(int64_t floats) {
  return (floats + kPage - 1) / kPage * kPage;
}

struct Task {
  GemmProduct product;
  GemmRectangle rectangle;
  int64_t scratch = 0;
};

constexpr int64_t kStep = GemmPlan::kStep;

GemmRectangle rectangle_of(const GemmProduct& product, const GemmPlan& plan, int64_t index) {
  const int64_t i = index / plan.column_parts;
  const int64_t j = index % plan.column_parts;
  return {part_begin(product.m, plan.row_parts, kStep, i),
          part_begin(product.m, plan.row_parts, kStep, i + 1),
          part_begin(product.n, plan.column_parts, kStep, j),
          part_begin(product.n, plan.column_parts, kStep, j + 1)};
}

// The share of one part of k: a product of its own, written to `to`.
GemmProduct part_of(const GemmProduct& whole, const GemmPlan& plan, int64_t part, float* to) {
  const int64_t begin = part_begin(whole.k, plan.k_parts, 1, part);
  GemmProduct product = whole;
  product.k = part_begin(whole.k, plan.k_parts, 1, part + 1) - begin;
  product.a.data += begin * whole.a.column;
  product.b.data += begin * whole.b.row;
  product.c = to;
  product.epilogue = {};
  return product;
}

}  // namespace

void gemm(CpuStream& stream, const Gemm<CpuDevice>& problem) {
  check(problem);
  if (problem.m == 0 || problem.n == 0) {
    return;
  }
  const GemmProduct whole = product_of(problem);
  const GemmPlan plan = plan_gemm(whole.m, whole.n, whole.k, stream.threads());
  const int64_t rectangles = plan.row_parts * plan.column_parts;
  const int64_t sums = plan.k_parts > 1 ? whole_pages(plan.k_parts * whole.m * whole.n) : 0;

  int64_t slot = 0;
  for (int64_t task = 0; task < plan.tasks(); ++task) {
    slot = std::max(
        slot, whole_pages(kernels().scratch_size(part_of(whole, plan, task / rectangles, nullptr),
                                                 rectangle_of(whole, plan, task % rectangles))));
  }
  const int64_t workers = std::min<int64_t>(stream.threads(), plan.tasks());
  float* const memory = thread_scratch(sums + slot * workers);

  parallel_for(stream.threads(), workers, [&](int64_t worker) {
    float* const own = memory + sums + worker * slot;
    for (int64_t task = worker; task < plan.tasks(); task += workers) {
      const GemmRectangle rectangle = rectangle_of(whole, plan, task % rectangles);
      if (plan.k_parts == 1) {
        kernels().rectangle(whole, rectangle, own);
      } else {
        const int64_t part = task / rectangles;
        kernels().rectangle(part_of(whole, plan, part, memory + part * whole.m * whole.n),
                            rectangle, own);
      }
    }
  });
  if (plan.k_parts > 1) {
    const int64_t strips = std::min<int64_t>(stream.threads(), (whole.m + kStep - 1) / kStep);
    parallel_for(stream.threads(), strips, [&](int64_t strip) {
      const GemmRectangle rows = {part_begin(whole.m, strips, kStep, strip),
                                  part_begin(whole.m, strips, kStep, strip + 1), 0, whole.n};
      kernels().sum_parts(whole, rows, memory, plan.k_parts);
    });
  }
}

}  // namespace lockstep
