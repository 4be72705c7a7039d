// all_reduce_bench: what the ring costs, in the rows of nccl-tests, with MPI_Allreduce beside it.

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/control_plane.h"
#include "comm/mpi_bootstrap.h"
#include "comm/peer_table.h"
#include "comm/transport_select.h"
#include "core/base/clock.h"
#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "nccl_tests_table.h"

namespace lockstep {
namespace {

struct Options {
  TableOptions table;
  TransportChoice transport = TransportChoice::kAuto;
  bool baseline = false;
  std::string json;
  std::string bind_address;
};

/// One size: all its timings, and the text of one element of the JSON file's results.
struct Result {
  int64_t bytes = 0;
  Timing out_of_place;
  Timing in_place;
  Timing baseline;
};

// More than any host has; sums and products of sizes stay within 64 bits below it.
constexpr int64_t kMostBytes = int64_t{1} << 44;
constexpr double kMostIterations = 1e6;

// "4096", "64K", "1M" or "2G"; powers of 1024.
int64_t parse_bytes(const std::string& flag, const std::string& text) {
  size_t digits = 0;
  int64_t value = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 15) {
    value = value * 10 + (text[digits++] - '0');
  }
  const std::string unit = text.substr(digits);
  const size_t power = unit.empty() ? 0 : std::string("KMG").find(unit) + 1;
  if (digits == 0 || unit.size() > 1 || power > 3 || (!unit.empty() && power == 0)) {
    throw UsageError("{} {}: a size is digits and, if you like, K, M or G", flag, text);
  }
  if (value > kMostBytes >> (10 * power)) {
    throw UsageError("{} {}: sizes are at most {} bytes", flag, text, kMostBytes);
  }
  return value << (10 * power);
}

/// What the flags that are words of nccl-tests or of ours say, before it is taken apart.
struct Words {
  std::string least = "32M";
  std::string most = "32M";
  std::string step = "1M";
  std::string device = "cpu";
  std::string type = "float";
  std::string operation = "sum";
  std::string transport = "auto";
  std::string baseline = "none";
  int64_t check = 1;
  int64_t blocking = 0;
  int64_t per_iteration = 0;
};

/// The flags of nccl-tests, by its names.
void declare_table(CommandLine& cli, Words& words, TableOptions& table) {
  table.iterations = 20;
  table.warmup_iterations = 1;
  cli.option("-b,--minbytes", &words.least, "First size, as 64K or 1M").value_name("SIZE");
  cli.option("-e,--maxbytes", &words.most, "Last size").value_name("SIZE");
  cli.option("-i,--stepbytes", &words.step, "Step from size to size").value_name("SIZE");
  cli.option("-f,--stepfactor", &table.step_factor, "Factor from size to size, in place of a step")
      .at_least(2)
      .at_most(1 << 16);
  cli.option("-n,--iters", &table.iterations, "Timed iterations of each size")
      .at_least(1)
      .at_most(kMostIterations);
  cli.option("-w,--warmup-iters", &table.warmup_iterations, "Iterations before them")
      .at_least(0)
      .at_most(kMostIterations);
  cli.option("-c,--check", &words.check, "1: check the sums, 0: do not").at_least(0).at_most(1);
  cli.option("-d,--datatype", &words.type, "Type of the elements").one_of({"float"});
  cli.option("-o,--op", &words.operation, "Operation").one_of({"sum"});
  cli.option("-z,--blocking", &words.blocking,
             "Taken as nccl-tests takes it; every iteration is waited for anyway")
      .at_least(0)
      .at_most(1);
  cli.option("-I,--per-iteration", &words.per_iteration,
             "1: also show least, most, 99th percentile and variation")
      .at_least(0)
      .at_most(1);
}

/// Our own.
void declare_ours(CommandLine& cli, Words& words, Options& options) {
  cli.option("--device", &words.device, "Where the arrays are").one_of({"cpu", "cuda"});
  cli.option("--transport", &words.transport, "How neighbours exchange data")
      .one_of(kTransportWords);
  cli.option("--baseline", &words.baseline, "mpi: MPI_Allreduce in place, in turn with ours")
      .one_of({"none", "mpi"});
  cli.option("--bind-address", &options.bind_address,
             "Address or interface of this host for sockets between hosts")
      .value_name("ADDRESS");
  cli.option("--json", &options.json, "File for the results (rank 0)").value_name("FILE");
}

void apply(const Words& words, Options& options) {
  TableOptions& table = options.table;
  if (words.device == "cuda") {
    throw UnsupportedError("--device cuda: this build sums on the CPU only; use --device cpu");
  }
  table.min_bytes = parse_bytes("-b", words.least);
  table.max_bytes = std::max(parse_bytes("-e", words.most), table.min_bytes);
  table.step_bytes = parse_bytes("-i", words.step);
  if (table.step_bytes == 0 || table.min_bytes < static_cast<int64_t>(sizeof(float))) {
    throw UsageError("-b must be at least one element (4 bytes) and -i above 0");
  }
  table.check = words.check == 1;
  table.blocking = words.blocking == 1;
  table.per_iteration = words.per_iteration == 1;
  options.baseline = words.baseline == "mpi";
  options.transport = transport_choice(words.transport);
  if (options.baseline && table.max_bytes / static_cast<int64_t>(sizeof(float)) > INT_MAX) {
    throw UsageError("--baseline mpi: MPI_Allreduce counts up to {} elements; lower -e", INT_MAX);
  }
}

/// False when help was printed.
bool parse_options(int argc, char** argv, Options* options) {
  Words words;
  CommandLine cli("all_reduce_bench", "Times sums over all ranks, in the rows of nccl-tests.");
  cli.usage("mpirun -np RANKS all_reduce_bench [OPTIONS]");
  declare_table(cli, words, options->table);
  declare_ours(cli, words, *options);
  cli.footer(
      "Each iteration fills the arrays anew, waits for all ranks, and is timed alone; `time` is "
      "the median over the iterations of the mean over the ranks. In place sums a range of the "
      "window, as the trainer does. Out of place first copies the input from other memory into the "
      "window; the copy is timed. Exits with 1 when a sum is wrong.");
  if (!cli.parse(argc, argv)) {
    return false;
  }
  apply(words, *options);
  return true;
}

/// What element `i` of `rank` is in a round: a small integer, so that sums are exact, and different
/// in each place and round, so that data of another place or an earlier round is wrong.
float input_at(uint32_t i, int rank, uint32_t round) {
  const uint32_t mixed =
      (i + round * 7919U) * 2654435761U + static_cast<uint32_t>(rank) * 0x3f1d2b49U;
  return static_cast<float>(static_cast<int32_t>(mixed >> 23U));
}

class AllReduceBench {
 public:
  AllReduceBench(MpiBootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
                 const Options& options)
      : bootstrap_(bootstrap),
        options_(options),
        communicator_(bootstrap, peers, control,
                      [&] {
                        CommunicatorOptions communicator;
                        communicator.transport = options.transport;
                        communicator.window_elements = elements_of(options.table.max_bytes);
                        communicator.bind_address = options.bind_address;
                        return communicator;
                      }()),
        ordinary_(elements_of(options.table.max_bytes)) {}

  std::string transport() const { return communicator_.transport_name(); }

  Result run(int64_t bytes) {
    const int64_t elements = elements_of(bytes);
    const CpuView<float> window = communicator_.window().subview({0, elements});
    const CpuView<float> ordinary = ordinary_.view().subview({0, elements});
    const auto sum_window = [&] {
      communicator_.all_reduce(stream_, {0, elements}, 0);
      communicator_.finish(stream_);
    };
    Series out_of_place;
    Series in_place;
    Series baseline;
    for (int64_t i = -options_.table.warmup_iterations; i < options_.table.iterations; ++i) {
      iterate(i, out_of_place, ordinary, window, [&] {
        std::memcpy(window.data(), ordinary.data(), static_cast<size_t>(elements) * sizeof(float));
        sum_window();
      });
      iterate(i, in_place, window, window, sum_window);
      if (options_.baseline) {
        iterate(i, baseline, ordinary, ordinary, [&] {
          MPI_Allreduce(MPI_IN_PLACE, ordinary.data(), static_cast<int>(elements), MPI_FLOAT,
                        MPI_SUM, MPI_COMM_WORLD);
        });
      }
    }
    return {elements * static_cast<int64_t>(sizeof(float)), gather(out_of_place), gather(in_place),
            options_.baseline ? gather(baseline) : Timing{}};
  }

 private:
  struct Series {
    std::vector<double> times_us;
    int64_t wrong = 0;
  };

  static int64_t elements_of(int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(float)); }

  template <class Operation>
  void iterate(int64_t iteration, Series& series, CpuView<float> input, CpuView<float> output,
               Operation operation) {
    ++round_;
    for (int64_t i = 0; i < input.size(); ++i) {
      input[i] = input_at(static_cast<uint32_t>(i), bootstrap_.rank(), round_);
    }
    bootstrap_.barrier();
    const Clock::time_point start = Clock::now();
    operation();
    const double seconds = seconds_since(start);
    if (iteration >= 0) {
      series.times_us.push_back(seconds * 1e6);
    }
    if (options_.table.check && iteration + 1 == options_.table.iterations) {
      for (int64_t i = 0; i < output.size(); ++i) {
        float expected = 0;
        for (int rank = 0; rank < bootstrap_.world_size(); ++rank) {
          expected += input_at(static_cast<uint32_t>(i), rank, round_);
        }
        series.wrong += output[i] == expected ? 0 : 1;
      }
    }
  }

  // Times: mean over the ranks of each iteration. Wrong elements: of all ranks together.
  Timing gather(const Series& series) {
    const std::string bytes(reinterpret_cast<const char*>(series.times_us.data()),
                            series.times_us.size() * sizeof(double));
    std::vector<double> mean(series.times_us.size());
    for (const std::string& of_rank : bootstrap_.all_gather(bytes)) {
      for (size_t i = 0; i < mean.size(); ++i) {
        double time = 0;
        std::memcpy(&time, of_rank.data() + i * sizeof(double), sizeof(double));
        mean[i] += time / bootstrap_.world_size();
      }
    }
    Timing timing = summarize(std::move(mean));
    for (const std::string& wrong : bootstrap_.all_gather(std::to_string(series.wrong))) {
      timing.wrong += std::stoll(wrong);
    }
    return timing;
  }

  MpiBootstrap& bootstrap_;
  const Options& options_;
  Communicator<CpuDevice> communicator_;
  CpuBuffer<float> ordinary_;
  CpuStream stream_;
  uint32_t round_ = 0;
};

std::string json_of(const std::vector<Result>& results, const Options& options,
                    const std::string& transport, int world_size) {
  std::string text = fmt::format(
      "{{\n  \"program\": \"all_reduce_bench\",\n  \"ranks\": {},\n  \"transport\": \"{}\",\n"
      "  \"iterations\": {},\n  \"results\": [",
      world_size, transport, options.table.iterations);
  const char* separator = "\n";
  for (const Result& result : results) {
    const Timing& timing = result.in_place;
    text += fmt::format(
        "{}    {{\"size\": {}, \"time_us\": {:.3f}, \"algbw\": {:.4f}, \"busbw\": {:.4f}, "
        "\"wrong\": {}, \"p99_us\": {:.3f}, \"out_of_place_time_us\": {:.3f}",
        separator, result.bytes, timing.time, algorithm_bandwidth(result.bytes, timing.time),
        bus_bandwidth(result.bytes, timing.time, world_size),
        timing.wrong + result.out_of_place.wrong, timing.p99, result.out_of_place.time);
    if (options.baseline) {
      text += fmt::format(", \"baseline_time_us\": {:.3f}", result.baseline.time);
    }
    text += "}";
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

void print(const MpiBootstrap& bootstrap, const std::string& text) {
  if (bootstrap.rank() == 0) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
}

// The number of wrong elements.
int64_t run_sizes(MpiBootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
                  const Options& options) {
  const TableOptions& table = options.table;
  AllReduceBench bench(bootstrap, peers, control, options);
  print(bootstrap, table_preamble(table, peers, "CPU"));
  print(bootstrap, fmt::format("# transport: {}\n", bench.transport()));
  print(bootstrap, table_header(table.per_iteration));

  std::vector<Result> results;
  int64_t wrong = 0;
  double bandwidth = 0;
  for (int64_t bytes = table.min_bytes; bytes <= table.max_bytes;
       bytes = table.step_factor > 1 ? bytes * table.step_factor : bytes + table.step_bytes) {
    const Result result = bench.run(bytes);
    const int world = bootstrap.world_size();
    print(bootstrap, table_row(table, result.bytes, world, result.out_of_place, result.in_place));
    if (options.baseline) {
      print(bootstrap,
            fmt::format("# MPI_Allreduce in place {:12} bytes: {:.2f} us, busbw {:.2f} GB/s, wrong "
                        "{}; ours takes {:.3f} of it\n",
                        result.bytes, result.baseline.time,
                        bus_bandwidth(result.bytes, result.baseline.time, world),
                        result.baseline.wrong, result.in_place.time / result.baseline.time));
    }
    wrong += result.out_of_place.wrong + result.in_place.wrong;
    bandwidth += (bus_bandwidth(result.bytes, result.out_of_place.time, world) +
                  bus_bandwidth(result.bytes, result.in_place.time, world)) /
                 2;
    results.push_back(result);
  }
  print(bootstrap, table_footer(wrong, bandwidth / static_cast<double>(results.size())));
  if (!options.json.empty() && bootstrap.rank() == 0) {
    replace_file(options.json,
                 json_of(results, options, bench.transport(), bootstrap.world_size()));
  }
  return wrong;
}

int all_reduce_bench(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, &options)) {
    return 0;
  }
  MpiBootstrap bootstrap(&argc, &argv);
  int64_t wrong = 0;
  try {
    const PeerTable peers = gather_peer_table(bootstrap);
    ControlOptions control_options;
    control_options.bind_address = options.bind_address;
    ControlPlane control(bootstrap, peers, control_options);
    run_under(control, [&] { wrong = run_sizes(bootstrap, peers, control, options); });
  } catch (...) {
    bootstrap.abandon();
    throw;
  }
  return static_cast<int>(wrong == 0 ? ExitCode::kDone : ExitCode::kInternal);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("all_reduce_bench", lockstep::all_reduce_bench, argc, argv);
}
