#include "all_reduce_options.h"

#include <algorithm>
#include <climits>

#include "comm/cuda/peer_plan.h"
#include "comm/transport_select.h"
#include "core/base/command_line.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

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
  std::string algorithm = "auto";
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
  cli.option("-G,--cudagraph", &table.graph_launches,
             "Capture the iterations into a CUDA graph and time this many launches; 0: no graph")
      .at_least(0)
      .at_most(kMostIterations);
}

/// Our own.
void declare_ours(CommandLine& cli, Words& words, AllReduceOptions& options) {
  cli.option("--device", &words.device, "Where the arrays are").one_of({"cpu", "cuda"});
  cli.option("--transport", &words.transport, "How neighbours exchange data")
      .one_of(kTransportWords);
  cli.option("--algorithm", &options.algorithm, "How GPUs sum over peer access")
      .one_of(kPeerAlgorithmWords);
  cli.flag("--beside", &options.beside,
           "Peer access and staged: as beside backward in the trainer, on few multiprocessors or "
           "by copies");
  cli.option("--baseline", &words.baseline,
             "In place, in turn with ours: MPI_Allreduce for the CPU, NCCL for GPUs")
      .one_of({"none", "mpi", "nccl"});
  cli.option("--min-busbw", &options.min_bus_bandwidth,
             "Least average bus bandwidth, GB/s; below it the exit code is 11")
      .at_least(0)
      .value_name("GBPS");
  cli.option("--bind-address", &options.bind_address,
             "Address or interface of this host for sockets between hosts")
      .value_name("ADDRESS");
  cli.option("--json", &options.json, "File for the results (rank 0)").value_name("FILE");
}

void apply(const Words& words, AllReduceOptions& options) {
  TableOptions& table = options.table;
  table.min_bytes = parse_bytes("-b", words.least);
  table.max_bytes = std::max(parse_bytes("-e", words.most), table.min_bytes);
  table.step_bytes = parse_bytes("-i", words.step);
  if (table.step_bytes == 0 || table.min_bytes < static_cast<int64_t>(sizeof(float))) {
    throw UsageError("-b must be at least one element (4 bytes) and -i above 0");
  }
  table.check = words.check == 1;
  table.blocking = words.blocking == 1;
  table.per_iteration = words.per_iteration == 1;
  options.cuda = words.device == "cuda";
  options.transport = transport_choice(words.transport);
  options.baseline = words.baseline == "mpi"    ? Baseline::kMpi
                     : words.baseline == "nccl" ? Baseline::kNccl
                                                : Baseline::kNone;
}

void check(const AllReduceOptions& options) {
  if (options.cuda && options.baseline == Baseline::kMpi) {
    throw UsageError("--baseline mpi sums on the CPU; use --baseline nccl or --device cpu");
  }
  if (!options.cuda && (options.baseline == Baseline::kNccl || options.algorithm != "auto" ||
                        options.beside || options.table.graph_launches > 0)) {
    throw UsageError("--baseline nccl, --algorithm, --beside and -G are for --device cuda");
  }
  if (options.algorithm != "auto" && options.transport != TransportChoice::kAuto &&
      options.transport != TransportChoice::kPeer) {
    throw UsageError("--algorithm is for --transport peer");
  }
  if (options.beside && options.transport != TransportChoice::kAuto &&
      options.transport != TransportChoice::kPeer &&
      options.transport != TransportChoice::kStaged) {
    throw UsageError("--beside is for --transport peer or staged");
  }
  if (options.baseline == Baseline::kMpi && elements_of(options.table.max_bytes) > INT_MAX) {
    throw UsageError("--baseline mpi: MPI_Allreduce counts up to {} elements; lower -e", INT_MAX);
  }
}

}  // namespace

CommunicatorOptions AllReduceOptions::communicator() const {
  CommunicatorOptions communicator;
  communicator.transport = transport;
  communicator.window_elements = elements_of(table.max_bytes);
  communicator.bind_address = bind_address;
  return communicator;
}

bool parse_all_reduce_options(int argc, char** argv, AllReduceOptions* options) {
  Words words;
  CommandLine cli("all_reduce_bench", "Times sums over all ranks, in the rows of nccl-tests.");
  cli.usage("mpirun -np RANKS all_reduce_bench [OPTIONS]");
  declare_table(cli, words, options->table);
  declare_ours(cli, words, *options);
  cli.footer(
      "Each iteration fills the arrays anew, waits for all ranks, and is timed alone, from the "
      "call until the host sees its end; `time` is the median over the iterations of the mean over "
      "the ranks. With -G the iterations run one after another in one launch, and a launch's time "
      "over their number is one of the timings. In place sums a range of the window, as the "
      "trainer does. Out of place first copies the input from other memory into the window; the "
      "copy is timed. Exits with 1 when a sum is wrong.");
  if (!cli.parse(argc, argv)) {
    return false;
  }
  apply(words, *options);
  check(*options);
  return true;
}

}  // namespace lockstep
