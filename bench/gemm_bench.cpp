// Measures the matrix product on a model's own shapes, beside a baseline in the same run.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/build_id.h"
#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/run_main.h"
#include "gemm_bench_cuda.h"
#include "gemm_shapes.h"
#include "kernels/cpu/isa.h"
#include "kernels/gemm.h"
#include "normal_values.h"
#include "openblas.h"
#include "timing.h"

namespace lockstep {
namespace {

constexpr int64_t kMostSize = 1 << 20;  // of m, n and k

struct Options {
  std::vector<std::string> mnk;
  std::string model;
  std::string transposes = "all";
  std::string device = "cpu";
  std::string isa;
  std::string baseline;
  std::string json;
  int64_t threads = 1;
  int64_t rung = 0;
  double seconds = 0.3;
  bool fusion = false;
};

// One shape's figures. The baseline's and the epilogue's are there when they were asked for.
struct Row {
  GemmShape shape;
  double seconds = 0;
  std::optional<double> baseline_seconds;
  std::optional<double> speedup;     // baseline's time over ours
  std::optional<double> fused_cost;  // product with bias, GELU and its derivative over plain

  double gflops() const { return shape.flop() / seconds * 1e-9; }
};

std::vector<GemmShape> shapes_of(const Options& options) {
  std::vector<GemmShape> shapes;
  if (options.mnk.size() % 3 != 0) {
    throw UsageError("--mnk takes three numbers, M,N,K; got {}", options.mnk.size());
  }
  for (size_t i = 0; i < options.mnk.size(); i += 3) {
    int64_t size[3] = {};
    for (size_t j = 0; j < 3; ++j) {
      const std::string& word = options.mnk[i + j];
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size[j]);
      if (error != std::errc() || end != word.data() + word.size() || size[j] < 1 ||
          size[j] > kMostSize) {
        throw UsageError("--mnk: '{}' is no whole number from 1 to {}", word, kMostSize);
      }
    }
    for (GemmShape& shape : gemm_shapes(size[0], size[1], size[2], options.transposes)) {
      shapes.push_back(std::move(shape));
    }
  }
  if (!options.model.empty()) {
    for (GemmShape& shape : model_gemm_shapes(options.model)) {
      if (options.transposes == "all" || options.transposes == shape.transposes()) {
        shapes.push_back(std::move(shape));
      }
    }
  }
  if (shapes.empty()) {
    throw UsageError("nothing to measure: give --mnk or --model, and a case that the model has");
  }
  return shapes;
}

CpuBuffer<float> normal(int64_t size, uint64_t stream) {
  CpuBuffer<float> buffer(size);
  const std::vector<float> values = normal_values(size, stream);
  std::copy(values.begin(), values.end(), buffer.view().data());
  return buffer;
}

Row measure(const GemmShape& shape, const Options& options, const OpenBlas* baseline) {
  CpuStream stream(static_cast<int>(options.threads));
  const CpuBuffer<float> a = normal(shape.m * shape.k, 0);
  const CpuBuffer<float> b = normal(shape.k * shape.n, 1);
  const CpuBuffer<float> bias = normal(shape.n, 2);
  CpuBuffer<float> c(shape.m * shape.n);
  CpuBuffer<float> slope(shape.m * shape.n);

  Gemm<CpuDevice> plain = {.m = shape.m,
                           .n = shape.n,
                           .k = shape.k,
                           .trans_a = shape.trans_a,
                           .trans_b = shape.trans_b,
                           .a = a.view(),
                           .b = b.view(),
                           .c = c.view()};
  Gemm<CpuDevice> fused = plain;
  fused.bias = bias.view();
  fused.gelu = Gelu::kTanh;
  fused.gelu_derivative = slope.view();

  std::vector<std::function<void()>> bodies = {[&] { gemm(stream, plain); }};
  if (baseline != nullptr) {
    bodies.emplace_back(
        [&] { baseline->gemm(shape, a.view().data(), b.view().data(), c.view().data()); });
  }
  const size_t first_fused = bodies.size();
  if (options.fusion) {
    bodies.emplace_back([&] { gemm(stream, fused); });
  }
  InterleavedTimer timer(options.threads == 1 ? TimerClock::kThread : TimerClock::kWall,
                         options.seconds);
  timer.run(bodies);

  Row row;
  row.shape = shape;
  row.seconds = timer.seconds(0);
  if (baseline != nullptr) {
    row.baseline_seconds = timer.seconds(1);
    row.speedup = timer.ratio(1, 0);
  }
  if (options.fusion) {
    row.fused_cost = timer.ratio(first_fused, 0);
  }
  return row;
}

void print_header(const Options& options) {
  fmt::print("{:<18} {:>2} {:>6} {:>6} {:>6} {:>10} {:>8}", "product", "op", "m", "n", "k",
             "time_us", "GFLOP/s");
  if (!options.baseline.empty()) {
    fmt::print(" {:>8} {:>6}", "baseline", "ratio");
  }
  if (options.fusion) {
    fmt::print(" {:>6}", "fused");
  }
  fmt::print("\n");
}

void print_row(const Row& row) {
  const GemmShape& shape = row.shape;
  fmt::print("{:<18} {:>2} {:>6} {:>6} {:>6} {:>10.1f} {:>8.1f}", shape.name, shape.transposes(),
             shape.m, shape.n, shape.k, row.seconds * 1e6, row.gflops());
  if (row.baseline_seconds) {
    fmt::print(" {:>8.1f} {:>6.3f}", shape.flop() / *row.baseline_seconds * 1e-9, *row.speedup);
  }
  if (row.fused_cost) {
    fmt::print(" {:>6.3f}", *row.fused_cost);
  }
  fmt::print("\n");
}

// Geometric mean of the ratios in each transpose case.
std::map<std::string, double> mean_ratios(const std::vector<Row>& rows) {
  std::map<std::string, std::vector<double>> ratios;
  for (const Row& row : rows) {
    if (row.speedup) {
      ratios[row.shape.transposes()].push_back(*row.speedup);
    }
  }
  std::map<std::string, double> means;
  for (const auto& [transposes, values] : ratios) {
    means[transposes] = geometric_mean(values);
  }
  return means;
}

std::string json_of(const std::vector<Row>& rows, const Options& options,
                    const std::string& baseline) {
  std::string text = fmt::format(
      "{{\n  \"bench\": \"gemm\",\n  \"build\": \"{}\",\n  \"device\": \"cpu\",\n"
      "  \"isa\": \"{}\",\n  \"threads\": {},\n  \"baseline\": \"{}\",\n  \"results\": [",
      build_id(), isa_name(cpu_isa()), options.threads, baseline);
  const char* separator = "\n";
  for (const Row& row : rows) {
    const GemmShape& shape = row.shape;
    text += fmt::format(
        "{}    {{\"product\": \"{}\", \"op\": \"{}\", \"m\": {}, \"n\": {}, \"k\": {}, "
        "\"time_us\": {:.3f}, \"gflops\": {:.2f}",
        separator, shape.name, shape.transposes(), shape.m, shape.n, shape.k, row.seconds * 1e6,
        row.gflops());
    if (row.baseline_seconds) {
      text += fmt::format(R"(, "baseline_time_us": {:.3f}, "ratio": {:.4f})",
                          *row.baseline_seconds * 1e6, *row.speedup);
    }
    if (row.fused_cost) {
      text += fmt::format(R"(, "fused": {:.4f})", *row.fused_cost);
    }
    text += "}";
    separator = ",\n";
  }
  text += "\n  ],\n  \"mean_ratio\": {";
  separator = "";
  for (const auto& [transposes, mean] : mean_ratios(rows)) {
    text += fmt::format(R"({}"{}": {:.4f})", separator, transposes, mean);
    separator = ", ";
  }
  return text + "}\n}\n";
}

void add_options(CommandLine& cli, Options& options) {
  cli.option("--mnk", &options.mnk, "A shape; may be given again").value_name("M,N,K");
  cli.option("--model", &options.model, "Every product of a model")
      .one_of({"char-cpu", "char", "124m"});
  cli.option("--trans", &options.transposes, "Which operands are transposed")
      .one_of({"NN", "NT", "TN", "TT", "all"});
  cli.option("--device", &options.device, "Where to compute").one_of({"cpu", "cuda"});
  cli.option("--threads", &options.threads, "Threads of ours and of the baseline")
      .at_least(1)
      .at_most(kMostThreads);
  cli.option("--isa", &options.isa, "Instruction set; by default the best of this CPU")
      .one_of({"portable", "avx2", "avx512"});
  cli.option("--baseline", &options.baseline, "Measure this beside ours").one_of({"openblas"});
  cli.option("--rung", &options.rung, "With --device cuda: this rung of the ladder; 0 for all")
      .at_least(0);
  cli.option("--seconds", &options.seconds, "Seconds for each shape").greater_than(0).at_most(1e6);
  cli.flag("--fusion", &options.fusion,
           "Measure the product with bias, GELU and its derivative too");
  cli.option("--json", &options.json, "Write the figures to this file").value_name("FILE");
  cli.footer(
      "Times are medians; ratio = the baseline's time over ours, fused = time with bias, GELU and "
      "its derivative over time of the plain product, both medians over interleaved rounds. One "
      "thread is timed by its processor time, several by the wall clock. --device cuda times the "
      "ladder's rungs as replays of CUDA graphs and, where its library is found, cuBLAS; UNPINNED "
      "says that the SM clock was not locked or moved; error is max |c - fp64| / max |fp64| over "
      "some elements.");
}

int run(int argc, char** argv) {
  Options options;
  CommandLine cli("gemm_bench", "Measures the matrix product.");
  add_options(cli, options);
  if (!cli.parse(argc, argv)) {
    return 0;
  }
  if (!options.json.empty()) {
    check_replaceable(options.json);
  }
  if (options.device == "cuda") {
    if (!options.baseline.empty() || options.fusion || cli.given("--threads") ||
        cli.given("--isa")) {
      throw UsageError("--baseline, --fusion, --threads and --isa are for --device cpu");
    }
    run_cuda_gemm_bench({.shapes = shapes_of(options),
                         .rung = options.rung,
                         .seconds = options.seconds,
                         .json = options.json});
    return 0;
  }
  if (cli.given("--rung")) {
    throw UsageError("--rung is for --device cuda");
  }
  if (!options.isa.empty()) {
    ::setenv("LOCKSTEP_ISA", options.isa.c_str(), 1);  // read at the first use of cpu_isa
  }
  const std::vector<GemmShape> shapes = shapes_of(options);
  std::optional<OpenBlas> openblas;
  std::string baseline;
  if (options.baseline == "openblas") {
    openblas.emplace(static_cast<int>(options.threads));
    baseline = openblas->description();
    fmt::print("# baseline: {}\n", baseline);
  }
  fmt::print("# {}, {} thread(s), build {}\n", isa_name(cpu_isa()), options.threads, build_id());

  print_header(options);
  std::vector<Row> rows;
  for (const GemmShape& shape : shapes) {
    rows.push_back(measure(shape, options, openblas ? &*openblas : nullptr));
    print_row(rows.back());
  }
  for (const auto& [transposes, mean] : mean_ratios(rows)) {
    fmt::print("# {} geometric mean of ratios: {:.3f}\n", transposes, mean);
  }
  if (!options.json.empty()) {
    replace_file(options.json, json_of(rows, options, baseline));
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("gemm_bench", lockstep::run, argc, argv);
}
