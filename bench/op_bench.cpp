// Measures every op but the matrix product at a model's shapes, each beside a plain copy of as many
// bytes in the same run.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/build_id.h"
#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/run_main.h"
#include "core/device/cpu_device.h"
#include "kernels/cpu/isa.h"
#include "op_bench_cuda.h"
#include "op_cases.h"
#include "timing.h"

namespace lockstep {
namespace {

constexpr int64_t kMostLogits = 1 << 26;  // more take longer to fill than to measure

struct Options {
  std::string model = "char-cpu";
  std::string op;
  std::string device = "cpu";
  std::string isa;
  std::string json;
  int64_t threads = 1;
  int64_t batch = 0;
  double seconds = 0.3;
};

struct Row {
  OpCase op;
  double seconds = 0;
  double copy_share = 0;  // time of the copy over ours

  double gbps() const { return static_cast<double>(op.bytes) / seconds * 1e-9; }
  double gflops() const { return static_cast<double>(op.flop) / seconds * 1e-9; }
  double step_us() const { return static_cast<double>(op.calls_per_step) * seconds * 1e6; }
};

Row measure(const OpCase& op, const Options& options) {
  CpuBuffer<std::byte> from(op.bytes / 2);
  CpuBuffer<std::byte> to(op.bytes / 2);
  const auto copy = [&] {
    std::memcpy(to.view().data(), from.view().data(), static_cast<size_t>(from.size()));
    asm volatile("" : : "r"(to.view().data()) : "memory");
  };
  InterleavedTimer timer(options.threads == 1 ? TimerClock::kThread : TimerClock::kWall,
                         options.seconds);
  timer.run({op.body, copy});
  return {op, timer.seconds(0), timer.ratio(1, 0)};
}

void print_row(const Row& row) {
  fmt::print("{:<20} {:>18} {:>10.2f} {:>8.1f} {:>6.2f}", row.op.name, row.op.shape,
             row.seconds * 1e6, row.gbps(), row.copy_share);
  fmt::print(" {:>8}", row.op.flop > 0 ? fmt::format("{:.1f}", row.gflops()) : "");
  fmt::print(" {:>5} {:>9.1f}\n", row.op.calls_per_step, row.step_us());
}

double step_us(const std::vector<Row>& rows) {
  double total = 0;
  for (const Row& row : rows) {
    total += row.step_us();
  }
  return total;
}

std::string json_of(const std::vector<Row>& rows, const Options& options) {
  std::string text = fmt::format(
      "{{\n  \"bench\": \"ops\",\n  \"build\": \"{}\",\n  \"device\": \"cpu\",\n"
      "  \"isa\": \"{}\",\n  \"threads\": {},\n  \"model\": \"{}\",\n  \"step_us\": {:.2f},\n"
      "  \"results\": [",
      build_id(), isa_name(cpu_isa()), options.threads, options.model, step_us(rows));
  const char* separator = "\n";
  for (const Row& row : rows) {
    text += fmt::format(
        "{}    {{\"op\": \"{}\", \"shape\": \"{}\", \"time_us\": {:.3f}, \"gbps\": {:.2f}, "
        "\"copy_share\": {:.4f}, \"gflops\": {:.2f}, \"calls_per_step\": {}}}",
        separator, row.op.name, row.op.shape, row.seconds * 1e6, row.gbps(), row.copy_share,
        row.gflops(), row.op.calls_per_step);
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

void run_on_cpu(const Options& options, BenchModel model) {
  if (!options.isa.empty()) {
    ::setenv("LOCKSTEP_ISA", options.isa.c_str(), 1);  // read at the first use of cpu_isa
  }
  model.batch = std::clamp<int64_t>(
      kMostLogits / (model.config.block_size * model.config.padded_vocab()), 1, model.batch);
  CpuStream stream(static_cast<int>(options.threads));
  const std::vector<OpCase> cases = choose_ops(op_cases(model, stream), options.op);
  fmt::print("# {}, {} thread(s), {}, batch {}, build {}\n", isa_name(cpu_isa()), options.threads,
             options.model, model.batch, build_id());
  fmt::print("{:<20} {:>18} {:>10} {:>8} {:>6} {:>8} {:>5} {:>9}\n", "op", "shape", "time_us",
             "GB/s", "copy", "GFLOP/s", "calls", "step_us");
  std::vector<Row> rows;
  for (const OpCase& op : cases) {
    rows.push_back(measure(op, options));
    print_row(rows.back());
  }
  fmt::print("# all ops of one step: {:.1f} us\n", step_us(rows));
  if (!options.json.empty()) {
    replace_file(options.json, json_of(rows, options));
  }
}

int run(int argc, char** argv) {
  Options options;
  CommandLine cli("op_bench", "Measures the ops that are no matrix product.");
  cli.option("--model", &options.model, "Whose shapes").one_of({"char-cpu", "char", "124m"});
  cli.option("--batch", &options.batch, "Sequences of a micro-step; 0 for the model's")
      .at_least(0)
      .at_most(1 << 16);
  cli.option("--op", &options.op, "Only ops whose name contains this").value_name("NAME");
  cli.option("--device", &options.device, "Where the ops run").one_of({"cpu", "cuda"});
  cli.option("--threads", &options.threads, "CPU threads of the ops; the copy has one")
      .at_least(1)
      .at_most(kMostThreads);
  cli.option("--isa", &options.isa, "Instruction set; by default the best of this CPU")
      .one_of({"portable", "avx2", "avx512"});
  cli.option("--seconds", &options.seconds, "Seconds for each op").greater_than(0).at_most(1e6);
  cli.option("--json", &options.json, "Write the figures to this file").value_name("FILE");
  cli.footer(
      "Times are medians; GB/s counts the bytes that must move at least; copy = time of a memcpy "
      "that moves as many, over the op's; step_us = time in one training step of the model. On the "
      "CPU one thread is timed by its processor time, several by the wall clock. On a GPU ops run "
      "in CUDA graphs, attention is left to attention_bench, and the copy is of 1 GiB; operands "
      "smaller than the L2 cache stay in it, as they do in a training step.");
  if (!cli.parse(argc, argv)) {
    return 0;
  }
  if (!options.json.empty()) {
    check_replaceable(options.json);
  }
  BenchModel model = bench_model(options.model);
  if (options.batch > 0) {
    model.batch = options.batch;
  }
  if (options.device == "cuda") {
    if (cli.given("--threads") || cli.given("--isa")) {
      throw UsageError("--threads and --isa are for --device cpu");
    }
    run_cuda_op_bench({.model = model,
                       .name = options.model,
                       .op = options.op,
                       .seconds = options.seconds,
                       .json = options.json});
  } else {
    run_on_cpu(options, model);
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("op_bench", lockstep::run, argc, argv);
}
