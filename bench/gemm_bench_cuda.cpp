// gemm_bench --device cuda: the ladder's rungs and the model's own product beside cuBLAS.
#include "gemm_bench_cuda.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "core/base/build_id.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "cublas.h"
#include "graph_timer.h"
#include "kernels/cuda/gemm/plan.h"
#include "kernels/cuda/gemm/planned_gemm.h"
#include "kernels/cuda/gemm/problem.h"
#include "kernels/cuda/ladder/rung.h"
#include "normal_values.h"
#include "timing.h"

namespace lockstep {
namespace {

using std::size_t;

// What is timed: a rung, the model's product by the plan of a precision, or cuBLAS in a mode.
struct Subject {
  std::string name;
  const Rung* rung = nullptr;
  std::optional<Precision> model = {};
  bool portable = false;  // of the model's: planned as on a GPU without wgmma
  Cublas::Math math = Cublas::Math::kFp32;

  // What a product of ours is compared with: cuBLAS in the same precision.
  Precision precision() const { return rung != nullptr ? rung->precision : *model; }
};

struct Row {
  Subject subject;
  GraphTimer::Figures figures;
  double error = 0;             // max |c - reference| / max |reference| over the sample
  std::optional<double> fp32;   // cuBLAS's time in fp32 over this one's
  std::optional<double> tf32;   // likewise in TF32
  Rung::Resources resources{};  // of a rung
  std::string plan;             // of the model's product
};

// A product's operands on both sides, and fp64 values of some of its elements.
class Operands {
 public:
  Operands(CudaStream& stream, const GemmShape& shape)
      : shape_(shape),
        host_a_(normal_values(shape.m * shape.k, 0)),
        host_b_(normal_values(shape.k * shape.n, 1)),
        a_(shape.m * shape.k),
        b_(shape.k * shape.n),
        c_(shape.m * shape.n) {
    copy_from_host(stream, a_.view(), host_a_.data());
    copy_from_host(stream, b_.view(), host_b_.data());
    stream.synchronize();
    sample();
  }

  Gemm<CudaDevice> problem() {
    return {.m = shape_.m,
            .n = shape_.n,
            .k = shape_.k,
            .trans_a = shape_.trans_a,
            .trans_b = shape_.trans_b,
            .a = std::as_const(a_).view(),
            .b = std::as_const(b_).view(),
            .c = c_.view()};
  }

  // Fills the sampled rows of c with NaN, so that what is not written shows.
  void poison(CudaStream& stream) {
    const std::vector<float> nan(static_cast<size_t>(shape_.n), std::nanf(""));
    for (const int64_t row : rows_) {
      copy_from_host(stream, row_of(row), nan.data());
    }
    stream.synchronize();
  }

  double error(CudaStream& stream) {
    std::vector<float> values(static_cast<size_t>(shape_.n));
    double worst = 0;
    double largest = 0;
    size_t next = 0;
    for (const int64_t row : rows_) {
      copy_to_host(stream, values.data(), CudaView<const float>(row_of(row)));
      stream.synchronize();
      for (const int64_t column : columns_) {
        const double reference = reference_[next++];
        const double off = std::abs(values[static_cast<size_t>(column)] - reference);
        worst = std::isnan(off) ? off : std::max(worst, off);
        largest = std::max(largest, std::abs(reference));
        if (std::isnan(worst)) {
          return worst;
        }
      }
    }
    return worst / largest;
  }

 private:
  static constexpr int64_t kSampledRows = 32;
  static constexpr int64_t kSampledColumns = 64;

  CudaView<float> row_of(int64_t row) {
    return c_.view().subview({row * shape_.n, (row + 1) * shape_.n});
  }

  // Distinct places, the first and the last among them.
  static std::set<int64_t> places(int64_t size, int64_t count, uint64_t stream) {
    std::set<int64_t> chosen = {0, size - 1};
    for (uint64_t i = 0; static_cast<int64_t>(i) < count; ++i) {
      chosen.insert(static_cast<int64_t>(random_bits(2, stream, i) % static_cast<uint64_t>(size)));
    }
    return chosen;
  }

  void sample() {
    rows_ = places(shape_.m, kSampledRows, 0);
    columns_ = places(shape_.n, kSampledColumns, 1);
    const bool trans_a = shape_.trans_a == Transpose::kYes;
    const bool trans_b = shape_.trans_b == Transpose::kYes;
    for (const int64_t i : rows_) {
      for (const int64_t j : columns_) {
        double sum = 0;
        for (int64_t p = 0; p < shape_.k; ++p) {
          const int64_t at_a = trans_a ? p * shape_.m + i : i * shape_.k + p;
          const int64_t at_b = trans_b ? j * shape_.k + p : p * shape_.n + j;
          sum += static_cast<double>(host_a_[static_cast<size_t>(at_a)]) *
                 static_cast<double>(host_b_[static_cast<size_t>(at_b)]);
        }
        reference_.push_back(sum);
      }
    }
  }

  GemmShape shape_;
  std::vector<float> host_a_;
  std::vector<float> host_b_;
  CudaBuffer<float> a_;
  CudaBuffer<float> b_;
  CudaBuffer<float> c_;
  std::set<int64_t> rows_;
  std::set<int64_t> columns_;
  std::vector<double> reference_;
};

/// What the GPU has not that the rung needs; empty if it has all.
std::string what_lacks(const Rung& rung, const CudaFacts& facts) {
  if (rung.compute_capability != 0 && rung.compute_capability != facts.compute_capability) {
    return fmt::format("rung {} is for compute capability {:.1f}, and {} has {:.1f}", rung.number,
                       rung.compute_capability / 10.0, facts.name, facts.compute_capability / 10.0);
  }
  const Rung::Resources needs = rung.resources(Transpose::kNo, Transpose::kNo);
  if (needs.resident_blocks > 0) {
    return "";
  }
  return fmt::format("rung {} takes {} bytes of shared memory a block, of which {} has {}",
                     rung.number, needs.shared_bytes, facts.name, facts.shared_bytes_per_block);
}

/// Prints what is left out. Throws UnsupportedError when that is the one rung that is asked for.
std::vector<Subject> subjects(int64_t rung, bool with_cublas, const CudaFacts& facts) {
  std::vector<Subject> chosen;
  if (with_cublas) {
    chosen.push_back({.name = "cuBLAS fp32", .math = Cublas::Math::kFp32});
    chosen.push_back({.name = "cuBLAS TF32", .math = Cublas::Math::kTf32});
  }
  const auto rungs = static_cast<int64_t>(ladder().size());
  if (rung > rungs) {
    throw UsageError("--rung {}: the ladder has rungs 1 to {}", rung, rungs);
  }
  for (const Rung& one : ladder()) {
    if (rung != 0 && rung != one.number) {
      continue;
    }
    const std::string why_not = what_lacks(one, facts);
    if (why_not.empty()) {
      chosen.push_back({.name = fmt::format("{:>2} {}", one.number, one.name), .rung = &one});
    } else if (rung == 0) {
      fmt::print("# left out: {}\n", why_not);
    } else {
      throw UnsupportedError("{}", why_not);
    }
  }
  if (rung == 0) {
    chosen.push_back({.name = "model fp32", .model = Precision::kFp32});
    chosen.push_back({.name = "model TF32", .model = Precision::kTf32});
    if (facts.compute_capability == 90) {
      chosen.push_back({.name = "portable fp32", .model = Precision::kFp32, .portable = true});
      chosen.push_back({.name = "portable TF32", .model = Precision::kTf32, .portable = true});
    }
  }
  return chosen;
}

GemmPlan plan_of(const Subject& subject, const Gemm<CudaDevice>& problem, CudaFacts facts) {
  if (subject.portable) {
    facts.compute_capability = 80;
  }
  return plan_gemm(query_of(problem), *subject.model, facts);
}

std::vector<Row> measure(CudaStream& stream, const SmClock& clock, const Cublas* cublas,
                         const std::vector<Subject>& chosen, const GemmShape& shape,
                         const CudaGemmBench& bench) {
  Operands operands(stream, shape);
  const Gemm<CudaDevice> problem = operands.problem();
  std::vector<Row> rows;
  std::vector<std::function<void()>> bodies;
  for (const Subject& subject : chosen) {
    GemmPlan plan;
    if (subject.rung != nullptr) {
      bodies.emplace_back(
          [&stream, &problem, rung = subject.rung] { rung->launch(stream, problem); });
    } else if (subject.model) {
      plan = plan_of(subject, problem, stream.facts());
      bodies.emplace_back([&stream, &problem, plan] { gemm_by_plan(stream, problem, plan); });
    } else {
      bodies.emplace_back([cublas, &shape, &problem, math = subject.math] {
        cublas->gemm(shape, math, problem.a.data(), problem.b.data(), problem.c.data());
      });
    }
    operands.poison(stream);
    bodies.back()();
    Row row{.subject = subject,
            .figures = {},
            .error = operands.error(stream),
            .fp32 = {},
            .tf32 = {},
            .plan = {}};
    if (subject.rung != nullptr) {
      row.resources = subject.rung->resources(shape.trans_a, shape.trans_b);
    } else if (subject.model) {
      row.plan =
          fmt::format("{}, {}", kernel_facts(plan.kernel).name,
                      plan.slices == 1 ? "k whole" : fmt::format("k in {} slices", plan.slices));
    }
    rows.push_back(std::move(row));
  }
  const std::vector<GraphTimer::Figures> figures =
      GraphTimer(stream, clock, bench.seconds).run(bodies);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].figures = figures[i];
    if (cublas != nullptr) {
      rows[i].fp32 = median_ratio(figures[0], figures[i]);
      rows[i].tf32 = median_ratio(figures[1], figures[i]);
    }
  }
  return rows;
}

void print_rows(const GemmShape& shape, const std::vector<Row>& rows) {
  fmt::print("\n{} {} {} x {} x {}\n", shape.name.empty() ? "product" : shape.name,
             shape.transposes(), shape.m, shape.n, shape.k);
  fmt::print("{:<20} {:>10} {:>9} {:>7} {:>7} {:>8} {:>5} {:>7} {:>6} {:>6} {:>11}\n", "kernel",
             "time_us", "GFLOP/s", "%fp32", "%TF32", "error", "regs", "shared", "spill", "blocks",
             "SM MHz");
  for (const Row& row : rows) {
    const Rung::Resources& uses = row.resources;
    fmt::print("{:<20} {:>10.1f} {:>9.0f}", row.subject.name, row.figures.seconds() * 1e6,
               shape.flop() / row.figures.seconds() * 1e-9);
    for (const std::optional<double>& ratio : {row.fp32, row.tf32}) {
      fmt::print(" {:>7}", ratio ? fmt::format("{:.1f}", *ratio * 100) : "-");
    }
    fmt::print(" {:>8.1e}", row.error);
    if (row.subject.rung != nullptr) {
      fmt::print(" {:>5} {:>7} {:>6} {:>6}", uses.registers, uses.shared_bytes, uses.spilled_bytes,
                 uses.resident_blocks);
    } else {
      fmt::print(" {:>5} {:>7} {:>6} {:>6}", "-", "-", "-", "-");
    }
    fmt::print(" {:>5}-{:<5} {}{}\n", row.figures.lowest_mhz, row.figures.highest_mhz,
               row.figures.clock(), row.plan.empty() ? "" : "  " + row.plan);
  }
  std::fflush(stdout);
}

std::string json_of(const GemmShape& shape, const Row& row) {
  const Rung* const rung = row.subject.rung;
  std::string text = fmt::format(
      R"(  {{"product": "{}", "op": "{}", "m": {}, "n": {}, "k": {}, "kernel": "{}", "rung": {}, )"
      R"("time_us": {:.3f}, "gflops": {:.1f}, "error": {:.3e})",
      shape.name, shape.transposes(), shape.m, shape.n, shape.k,
      rung != nullptr ? rung->name : row.subject.name, rung != nullptr ? rung->number : 0,
      row.figures.seconds() * 1e6, shape.flop() / row.figures.seconds() * 1e-9, row.error);
  if (row.fp32) {
    text += fmt::format(R"(, "cublas_fp32_ratio": {:.4f}, "cublas_tf32_ratio": {:.4f})", *row.fp32,
                        *row.tf32);
  }
  if (rung != nullptr) {
    const Rung::Resources& uses = row.resources;
    text += fmt::format(
        R"(, "registers": {}, "shared_bytes": {}, "spilled_bytes": {}, "resident_blocks": {}, )"
        R"("threads": {})",
        uses.registers, uses.shared_bytes, uses.spilled_bytes, uses.resident_blocks, uses.threads);
  }
  if (!row.plan.empty()) {
    text += fmt::format(R"(, "plan": "{}")", row.plan);
  }
  return text + fmt::format(R"(, "sm_mhz": [{}, {}], "clock": "{}"}})", row.figures.lowest_mhz,
                            row.figures.highest_mhz, row.figures.clock());
}

// Geometric mean over the shapes, for each kernel of ours, of cuBLAS's time over its own.
void print_means(const std::vector<std::vector<Row>>& results) {
  for (size_t i = 2; i < results.front().size(); ++i) {
    std::vector<double> ratios;
    ratios.reserve(results.size());
    const Row& first = results.front()[i];
    for (const std::vector<Row>& rows : results) {
      ratios.push_back(first.subject.precision() == Precision::kTf32 ? *rows[i].tf32
                                                                     : *rows[i].fp32);
    }
    fmt::print("# {}: geometric mean {:.3f} of cuBLAS {}\n", first.subject.name,
               geometric_mean(ratios),
               first.subject.precision() == Precision::kTf32 ? "TF32" : "fp32");
  }
}

}  // namespace

void run_cuda_gemm_bench(const CudaGemmBench& bench) {
  require_cuda_device();
  const CudaFacts facts = cuda_facts(0);
  const SmClock clock(facts.pci_id);
  CudaStream stream;
  std::unique_ptr<Cublas> cublas;
  std::string baseline = "none";
  try {
    cublas = std::make_unique<Cublas>(stream);
    baseline = "cuBLAS " + cublas->version();
  } catch (const UnsupportedError& error) {
    fmt::print("# no baseline: {}\n", error.what());
  }
  fmt::print("# {}, {} multiprocessors, driver {}, {}, build {}\n", facts.name,
             facts.multiprocessors, clock.driver(), baseline, build_id());

  const std::vector<Subject> chosen = subjects(bench.rung, cublas != nullptr, facts);
  std::vector<std::vector<Row>> results;
  std::string body;
  for (const GemmShape& shape : bench.shapes) {
    results.push_back(measure(stream, clock, cublas.get(), chosen, shape, bench));
    print_rows(shape, results.back());
    for (const Row& row : results.back()) {
      body += (body.empty() ? "\n" : ",\n") + json_of(shape, row);
    }
  }
  if (cublas != nullptr && bench.shapes.size() > 1) {
    print_means(results);
  }
  if (!bench.json.empty()) {
    replace_file(
        bench.json,
        fmt::format(R"({{"bench": "gemm", "build": "{}", "device": "{}", "multiprocessors": {}, )"
                    R"("driver": "{}", "baseline": "{}", "results": [{}
]}}
)",
                    build_id(), facts.name, facts.multiprocessors, clock.driver(), baseline, body));
  }
}

}  // namespace lockstep
