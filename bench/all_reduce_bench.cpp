// all_reduce_bench: what sums over all ranks cost, in the rows of nccl-tests, with another
// library's beside them.
#include "all_reduce_bench.h"

#include <fmt/core.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "comm/agreement.h"
#include "comm/run_under.h"
#include "comm/start_together.h"
#include "comm/transport_select.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/run_main.h"

namespace lockstep {
namespace {

std::string json_of(const AllReduceBench& bench, const std::vector<AllReduceResult>& results,
                    const AllReduceOptions& options, int world_size) {
  std::string text = fmt::format(
      "{{\n  \"program\": \"all_reduce_bench\",\n  \"device\": \"{}\",\n  \"ranks\": {},\n"
      "  \"transport\": \"{}\",\n  \"algorithm\": \"{}\",\n  \"iterations\": {},\n"
      "  \"graph_launches\": {},\n  \"link_gbps\": {:.2f},\n  \"baseline\": \"{}\",\n"
      "  \"results\": [",
      bench.device(), world_size, bench.transport(), options.algorithm, options.table.iterations,
      options.table.graph_launches, bench.link_bandwidth(),
      options.baseline == Baseline::kNone ? "none" : bench.baseline());
  const char* separator = "\n";
  for (const AllReduceResult& result : results) {
    const Timing& timing = result.in_place;
    text += fmt::format(
        "{}    {{\"size\": {}, \"time_us\": {:.3f}, \"algbw\": {:.4f}, \"busbw\": {:.4f}, "
        "\"wrong\": {}, \"p99_us\": {:.3f}, \"out_of_place_time_us\": {:.3f}",
        separator, result.bytes, timing.time, algorithm_bandwidth(result.bytes, timing.time),
        bus_bandwidth(result.bytes, timing.time, world_size),
        timing.wrong + result.out_of_place.wrong, timing.p99, result.out_of_place.time);
    if (!result.plan.empty()) {
      text += fmt::format(R"(, "plan": "{}")", result.plan);
    }
    if (options.baseline != Baseline::kNone) {
      text += fmt::format(R"(, "baseline_time_us": {:.3f}, "baseline_p99_us": {:.3f})",
                          result.baseline.time, result.baseline.p99);
    }
    text += "}";
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

void print(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

// What the table of nccl-tests has no column for.
std::string remarks(const AllReduceBench& bench, const AllReduceResult& result,
                    const AllReduceOptions& options, int world) {
  std::string text;
  if (!result.plan.empty()) {
    text += fmt::format("# in place {:12} bytes: {}\n", result.bytes, result.plan);
  }
  if (bench.link_bandwidth() > 0) {
    text += fmt::format(
        "# in place {:12} bytes: {:.1f} % of the link\n", result.bytes,
        100 * bus_bandwidth(result.bytes, result.in_place.time, world) / bench.link_bandwidth());
  }
  if (options.baseline != Baseline::kNone) {
    text += fmt::format(
        "# {} in place {:12} bytes: {:.2f} us, p99 {:.2f}, busbw {:.2f} GB/s, wrong {}; ours takes "
        "{:.3f} of it\n",
        bench.baseline(), result.bytes, result.baseline.time, result.baseline.p99,
        bus_bandwidth(result.bytes, result.baseline.time, world), result.baseline.wrong,
        result.in_place.time / result.baseline.time);
  }
  return text;
}

std::string what_is_timed(const AllReduceOptions& options) {
  if (options.table.graph_launches == 0) {
    return "# time: of one sum, from its call until the host sees its end\n";
  }
  return fmt::format(
      "# time: of one of the {} sums that a launch of a graph runs one after another; {} "
      "launches\n",
      options.table.iterations, options.table.graph_launches);
}

struct Outcome {
  int64_t wrong = 0;
  double bus_bandwidth = 0;  ///< average, GB/s
};

Outcome run_sizes(MpiBootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
                  const AllReduceOptions& options) {
  const TableOptions& table = options.table;
  const auto make = options.cuda ? make_cuda_all_reduce_bench : make_cpu_all_reduce_bench;
  const std::unique_ptr<AllReduceBench> bench = make(bootstrap, peers, control, options);
  print(table_preamble(table, peers,
                       bootstrap.all_gather(device_cell(bench->pci_id(), bench->device()))));
  print(fmt::format("# transport: {}\n", bench->transport()));
  if (options.cuda) {
    print(what_is_timed(options));
    print(fmt::format("# link, by copy engines both ways: {:.1f} GB/s\n", bench->link_bandwidth()));
  }
  if (options.baseline == Baseline::kNccl) {
    print(fmt::format("# baseline: {}, NCCL_NVLS_ENABLE=0\n", bench->baseline()));
  }
  print(table_header(table.per_iteration));

  const int world = bootstrap.world_size();
  std::vector<AllReduceResult> results;
  Outcome outcome;
  for (int64_t bytes = table.min_bytes; bytes <= table.max_bytes;
       bytes = table.step_factor > 1 ? bytes * table.step_factor : bytes + table.step_bytes) {
    const AllReduceResult result = bench->run(bytes);
    print(table_row(table, result.bytes, world, result.out_of_place, result.in_place));
    print(remarks(*bench, result, options, world));
    outcome.wrong += result.out_of_place.wrong + result.in_place.wrong;
    outcome.bus_bandwidth += (bus_bandwidth(result.bytes, result.out_of_place.time, world) +
                              bus_bandwidth(result.bytes, result.in_place.time, world)) /
                             2;
    results.push_back(result);
  }
  outcome.bus_bandwidth /= static_cast<double>(results.size());
  print(table_footer(outcome.wrong, outcome.bus_bandwidth));
  if (!options.json.empty() && bootstrap.rank() == 0) {
    replace_file(options.json, json_of(*bench, results, options, world));
  }
  return outcome;
}

ExitCode verdict(const Outcome& outcome, const AllReduceOptions& options) {
  if (outcome.wrong != 0) {
    return ExitCode::kInternal;
  }
  if (outcome.bus_bandwidth < options.min_bus_bandwidth) {
    print(
        fmt::format("# FAILED: the average bus bandwidth is below the {} GB/s of "
                    "--min-busbw\n",
                    options.min_bus_bandwidth));
    return ExitCode::kTooSlow;
  }
  return ExitCode::kDone;
}

std::map<std::string, std::string> facts_of(const AllReduceOptions& options) {
  const TableOptions& table = options.table;
  return {{"-b", std::to_string(table.min_bytes)},
          {"-e", std::to_string(table.max_bytes)},
          {"-i", std::to_string(table.step_bytes)},
          {"-f", std::to_string(table.step_factor)},
          {"-n", std::to_string(table.iterations)},
          {"-w", std::to_string(table.warmup_iterations)},
          {"-c", table.check ? "1" : "0"},
          {"-G", std::to_string(table.graph_launches)},
          {"--device", options.cuda ? "cuda" : "cpu"},
          {"--transport", transport_word(options.transport)},
          {"--algorithm", options.algorithm},
          {"--beside", options.beside ? "yes" : "no"},
          {"--baseline", std::to_string(static_cast<int>(options.baseline))}};
}

int all_reduce_bench(int argc, char** argv) {
  MpiBootstrap bootstrap(&argc, &argv);
  set_output_rank(bootstrap);
  AllReduceOptions options;
  bool goes_on = false;
  start_together(bootstrap, "all_reduce_bench", [&] {
    goes_on = parse_all_reduce_options(argc, argv, &options);
    if (bootstrap.rank() == 0 && !options.json.empty()) {
      check_replaceable(options.json);
    }
  });
  if (!goes_on) {
    return static_cast<int>(ExitCode::kDone);
  }
  Outcome outcome;
  bootstrap.run([&] {
    const PeerTable peers = gather_peer_table(bootstrap);
    ControlOptions control_options;
    control_options.bind_address = options.bind_address;
    ControlPlane control(bootstrap, peers, control_options);
    run_under(control, [&] {
      check_agreement(bootstrap, facts_of(options));
      outcome = run_sizes(bootstrap, peers, control, options);
    });
  });
  return static_cast<int>(verdict(outcome, options));
}

}  // namespace

Timing gather_series(Bootstrap& bootstrap, const AllReduceSeries& series) {
  const std::string bytes(reinterpret_cast<const char*>(series.times_us.data()),
                          series.times_us.size() * sizeof(double));
  std::vector<double> mean(series.times_us.size());
  for (const std::string& of_rank : bootstrap.all_gather(bytes)) {
    for (size_t i = 0; i < mean.size(); ++i) {
      double time = 0;
      std::memcpy(&time, of_rank.data() + i * sizeof(double), sizeof(double));
      mean[i] += time / bootstrap.world_size();
    }
  }
  Timing timing = summarize(std::move(mean));
  for (const std::string& wrong : bootstrap.all_gather(std::to_string(series.wrong))) {
    timing.wrong += std::stoll(wrong);
  }
  return timing;
}

}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("all_reduce_bench", lockstep::all_reduce_bench, argc, argv);
}
