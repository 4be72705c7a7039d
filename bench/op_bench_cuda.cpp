// op_bench --device cuda: each op beside a copy of as many bytes, in CUDA graphs.
#include "op_bench_cuda.h"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <vector>

#include "core/base/build_id.h"
#include "core/base/file.h"
#include "core/device/cuda_error.h"
#include "graph_timer.h"
#include "kernels/cuda/ops.h"
#include "op_activation_cases.h"
#include "op_parameter_cases.h"
#include "timing.h"

namespace lockstep {
namespace {

// GB/s, read and written, of copies that no cache holds. Not in a graph: there a copy of the driver
// takes another way, which reaches two thirds.
double copy_gbps(CudaStream& stream) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  constexpr int kCopies = 4;
  CudaBuffer<std::byte> from(kBytes);
  CudaBuffer<std::byte> to(kBytes);
  std::vector<double> samples;
  for (int round = 0; round < 5; ++round) {
    CudaEvent start;
    CudaEvent stop;
    start.record(stream);
    for (int i = 0; i < kCopies; ++i) {
      check_cuda(cudaMemcpyAsync(to.view().data(), from.view().data(), kBytes,
                                 cudaMemcpyDeviceToDevice, stream.handle()),
                 "copying on the GPU");
    }
    stop.record(stream);
    samples.push_back(stop.seconds_since(start));
  }
  return 2.0 * kCopies * kBytes / median(samples) * 1e-9;
}

struct Row {
  OpCase op;
  GraphTimer::Figures figures;
  double copy_gbps = 0;

  double us() const { return figures.seconds() * 1e6; }
  double gbps() const { return static_cast<double>(op.bytes) / figures.seconds() * 1e-9; }
  double copy_share() const { return gbps() / copy_gbps; }
  double step_us() const { return static_cast<double>(op.calls_per_step) * us(); }
};

std::vector<OpCase> cuda_op_cases(const BenchModel& model, CudaStream& stream) {
  OpCaseMaker<CudaDevice> cases(stream);
  add_embedding(cases, model);
  add_layernorm(cases, model);
  add_cross_entropy(cases, model);
  add_column_sums(cases, model);
  add_parameters(cases, model);
  return cases.take();
}

void print_row(const Row& row) {
  fmt::print("{:<20} {:>18} {:>10.2f} {:>8.1f} {:>6.2f} {:>5} {:>9.1f} {:>5}-{:<5} {}\n",
             row.op.name, row.op.shape, row.us(), row.gbps(), row.copy_share(),
             row.op.calls_per_step, row.step_us(), row.figures.lowest_mhz, row.figures.highest_mhz,
             row.figures.clock());
}

std::string json_of(const Row& row) {
  return fmt::format(
      R"({{"op": "{}", "shape": "{}", "time_us": {:.3f}, "gbps": {:.2f}, "copy_share": {:.4f}, )"
      R"("calls_per_step": {}, "sm_mhz": [{}, {}], "clock": "{}"}})",
      row.op.name, row.op.shape, row.us(), row.gbps(), row.copy_share(), row.op.calls_per_step,
      row.figures.lowest_mhz, row.figures.highest_mhz, row.figures.clock());
}

}  // namespace

void run_cuda_op_bench(const CudaOpBench& bench) {
  require_cuda_device();
  const CudaFacts facts = cuda_facts(0);
  const SmClock clock(facts.pci_id);
  CudaStream stream;
  const std::vector<OpCase> cases = choose_ops(cuda_op_cases(bench.model, stream), bench.op);
  GraphTimer timer(stream, clock, bench.seconds);
  const double copy = copy_gbps(stream);
  fmt::print("# {}, driver {}, {}, batch {}, build {}\n", facts.name, clock.driver(), bench.name,
             bench.model.batch, build_id());
  fmt::print("# copy of 1 GiB: {:.0f} GB/s\n", copy);
  fmt::print("{:<20} {:>18} {:>10} {:>8} {:>6} {:>5} {:>9} {:>11} clock\n", "op", "shape",
             "time_us", "GB/s", "copy", "calls", "step_us", "MHz");
  std::string body;
  double total = 0;
  for (const OpCase& op : cases) {
    const Row row = {op, timer.run({op.body})[0], copy};
    print_row(row);
    total += row.step_us();
    body += (body.empty() ? "\n    " : ",\n    ") + json_of(row);
  }
  fmt::print("# these ops in one step: {:.1f} us\n", total);
  if (!bench.json.empty()) {
    replace_file(
        bench.json,
        fmt::format(
            "{{\n  \"bench\": \"ops\",\n  \"build\": \"{}\",\n  \"device\": \"{}\",\n"
            "  \"driver\": \"{}\",\n  \"model\": \"{}\",\n  \"batch\": {},\n"
            "  \"copy_gbps\": {:.1f},\n  \"step_us\": {:.2f},\n  \"results\": [{}\n  ]\n}}\n",
            build_id(), facts.name, clock.driver(), bench.name, bench.model.batch, copy, total,
            body));
  }
}

}  // namespace lockstep
