// step_bench: what one training step costs, and what communication adds to it. Runs under mpirun on
// random tokens. The exposed time is the honest one: the step's time minus the time of the same
// step with the same hooks and buckets but nothing sent, all ranks running at the same time, so
// that contention between computing and communicating counts as exposed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "comm/mpi_bootstrap.h"
#include "core/base/build_id.h"
#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "kernels/cpu/isa.h"
#include "trainer/batch_plan.h"
#include "trainer/config.h"
#include "trainer/cpu_threads.h"
#include "trainer/launch.h"
#include "trainer/step.h"
#include "trainer/window_layout.h"

namespace lockstep {
namespace {

struct BenchConfig {
  TrainConfig train;
  int64_t vocab_size = 65;
  int64_t steps = 60;
  int64_t rounds = 4;
  std::string json;
};

/// Median and 95th percentile of one quantity over the measured steps.
struct Quantiles {
  double median = 0;
  double p95 = 0;
};

Quantiles quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    return values[static_cast<size_t>(std::llround(q * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.5), at(0.95)};
}

/// The slowest rank's figure: it is what a run gets.
Quantiles slowest(Bootstrap& bootstrap, Quantiles mine) {
  Quantiles worst;
  for (const std::string& text :
       bootstrap.all_gather(fmt::format("{} {}", mine.median, mine.p95))) {
    Quantiles theirs;
    std::sscanf(text.c_str(), "%lf %lf", &theirs.median, &theirs.p95);
    worst.median = std::max(worst.median, theirs.median);
    worst.p95 = std::max(worst.p95, theirs.p95);
  }
  return worst;
}

HostBatch random_batch(int64_t tokens, int64_t vocabulary, uint64_t stream) {
  HostBatch batch;
  for (int64_t i = 0; i < tokens; ++i) {
    const uint64_t bits = random_bits(1, stream, static_cast<uint64_t>(i));
    batch.tokens.push_back(static_cast<int32_t>((bits >> 32) % static_cast<uint64_t>(vocabulary)));
    batch.targets.push_back(
        static_cast<int32_t>((bits & 0xffffffffU) % static_cast<uint64_t>(vocabulary)));
  }
  return batch;
}

/// What was measured, in seconds.
struct Figures {
  Quantiles step;
  Quantiles forward;
  Quantiles backward;
  Quantiles waited;  ///< in finish(), as the step line's "exposed"
  Quantiles optimizer;
  Quantiles replica;  ///< a step with nothing sent
  Quantiles comm;     ///< the collectives with nothing computed

  double exposed() const { return step.median - replica.median; }
};

class StepBench {
 public:
  StepBench(const Group& group, const BenchConfig& config, int threads)
      : group_(group),
        config_(config),
        plan_(plan_batch(config.train.batch_size, config.train.global_batch_size,
                         config.train.gradient_accumulation_steps, group.world_size())),
        model_(config.train.model(config.vocab_size)),
        window_(ParamTable(model_).arena_size(), plan_, 0),
        stream_(threads),
        communicator_(group.bootstrap, group.peers, group.control, communicator_options()),
        replica_(stream_, model_, config.train.adamw(), 1, plan_.batch_size,
                 communicator_.window().subview(window_.gradients)),
        batch_(random_batch(plan_.batch_size * model_.block_size, model_.vocab_size,
                            static_cast<uint64_t>(group.rank()))) {}

  /// Blocks of real steps and of steps with nothing sent take turns, so that a change of the
  /// machine's pace hits both.
  Figures measure() {
    std::vector<StepTimes> real;
    std::vector<StepTimes> alone;
    std::vector<double> comm;
    const Reduction reduction =
        config_.train.overlap ? Reduction::kOverlapped : Reduction::kAfterBackward;
    for (int64_t round = 0; round < config_.rounds; ++round) {
      run_block(reduction, real);
      run_block(Reduction::kNone, alone);
      run_collectives(comm);
    }
    Figures figures;
    figures.step = quantiles_of(real, [](const StepTimes& t) { return t.total(); });
    figures.forward = quantiles_of(real, [](const StepTimes& t) { return t.forward; });
    figures.backward = quantiles_of(real, [](const StepTimes& t) { return t.backward; });
    figures.waited = quantiles_of(real, [](const StepTimes& t) { return t.exposed; });
    figures.optimizer = quantiles_of(real, [](const StepTimes& t) { return t.optimizer; });
    figures.replica = quantiles_of(alone, [](const StepTimes& t) { return t.total(); });
    figures.comm = slowest(group_.bootstrap, quantiles(std::move(comm)));
    return figures;
  }

  std::string title() const {
    return fmt::format(
        "{} ranks, {}, {} threads a rank, {}, overlap {}; {} layers, {} heads, {} channels, block "
        "{}, vocabulary {}: {} parameters; {} x {} tokens a step",
        group_.world_size(), communicator_.transport_name(), stream_.threads(), isa_name(cpu_isa()),
        config_.train.overlap ? "on" : "off", model_.n_layer, model_.n_head, model_.n_embd,
        model_.block_size, model_.vocab_size, ParamTable(model_).parameter_count(),
        plan_.global_batch_size(), model_.block_size);
  }
  int64_t tokens() const { return plan_.global_batch_size() * model_.block_size; }
  int64_t bytes() const { return window_.elements() * static_cast<int64_t>(sizeof(float)); }
  std::string transport() const { return communicator_.transport_name(); }

 private:
  static constexpr int64_t kWarmUp = 5;  ///< steps of a block that do not count

  CommunicatorOptions communicator_options() const {
    CommunicatorOptions options = config_.train.communicator();
    options.window_elements = window_.elements();
    return options;
  }

  void run_block(Reduction reduction, std::vector<StepTimes>& times) {
    Overlap<CpuDevice> overlap(communicator_, window_.gradients, window_.record.range(), reduction,
                               config_.train.bucket_elements());
    StepContext<CpuDevice> context{
        replica_,       overlap, group_.control, communicator_.window(),
        window_.record, plan_,   group_.rank(),  [this]() -> const HostBatch& { return batch_; }};
    group_.bootstrap.barrier();
    for (int64_t i = 0; i < kWarmUp + config_.steps; ++i) {
      const StepResult result = train_step(context, step_++, 1e-5, {});
      if (i >= kWarmUp) {
        times.push_back(result.times);
      }
    }
  }

  void run_collectives(std::vector<double>& times) {
    group_.bootstrap.barrier();
    for (int64_t i = 0; i < kWarmUp + config_.steps; ++i) {
      const Clock::time_point start = Clock::now();
      communicator_.all_reduce(stream_, {0, window_.elements()}, 0);
      communicator_.finish(stream_);
      if (i >= kWarmUp) {
        times.push_back(seconds_since(start));
      }
    }
    set_zero(stream_, communicator_.window());
  }

  template <class Select>
  Quantiles quantiles_of(const std::vector<StepTimes>& times, Select select) {
    std::vector<double> values;
    std::transform(times.begin(), times.end(), std::back_inserter(values), select);
    return slowest(group_.bootstrap, quantiles(std::move(values)));
  }

  Group group_;
  BenchConfig config_;
  BatchPlan plan_;
  GptConfig model_;
  WindowLayout window_;
  CpuStream stream_;
  Communicator<CpuDevice> communicator_;
  Replica<CpuDevice> replica_;
  HostBatch batch_;
  int64_t step_ = 0;
};

void print(const StepBench& bench, const Figures& f) {
  const auto row = [](const char* name, Quantiles q) {
    fmt::print("{:<28}{:>10.3f} ms{:>10.3f} ms\n", name, 1e3 * q.median, 1e3 * q.p95);
  };
  fmt::print("{}\n{:<28}{:>13}{:>13}\n", bench.title(), "", "median", "p95");
  row("step", f.step);
  row("  forward", f.forward);
  row("  backward", f.backward);
  row("  waiting for sums", f.waited);
  row("  optimizer", f.optimizer);
  row("step, nothing sent", f.replica);
  row("collectives alone", f.comm);
  fmt::print("exposed communication {:.3f} ms = step - step with nothing sent\n",
             1e3 * f.exposed());
  fmt::print("{:.0f} tok/s\n", static_cast<double>(bench.tokens()) / f.step.median);
}

std::string to_json(const BenchConfig& config, const StepBench& bench, const Figures& f) {
  const auto ms = [](const char* name, Quantiles q) {
    return fmt::format(R"("{0}_ms": {1:.4f}, "{0}_p95_ms": {2:.4f})", name, 1e3 * q.median,
                       1e3 * q.p95);
  };
  std::string options;
  for (const auto& [name, value] : config.train.options()) {
    options += fmt::format(R"({}"{}": "{}")", options.empty() ? "" : ", ", name, value);
  }
  return fmt::format(
      R"({{"bench": "step_bench", "build": "{}", "transport": "{}", "isa": "{}",
 "options": {{{}}},
 "steps": {}, {}, {}, {}, {}, {}, {}, {},
 "exposed_ms": {:.4f}, "tokens_per_second": {:.1f}, "reduced_bytes": {}}}
)",
      build_id(), bench.transport(), isa_name(cpu_isa()), options, config.steps * config.rounds,
      ms("step", f.step), ms("forward", f.forward), ms("backward", f.backward),
      ms("waited", f.waited), ms("optimizer", f.optimizer), ms("replica", f.replica),
      ms("comm_alone", f.comm), 1e3 * f.exposed(),
      static_cast<double>(bench.tokens()) / f.step.median, bench.bytes());
}

void run_bench(Bootstrap& bootstrap, const BenchConfig& config) {
  const PeerTable peers = gather_peer_table(bootstrap);
  ControlPlane control(bootstrap, peers, config.train.control());
  const Group group{bootstrap, peers, control};
  run_under(control, [&] {
    const int threads =
        config.train.threads == 0 ? default_threads(group) : static_cast<int>(config.train.threads);
    StepBench bench(group, config, threads);
    const Figures figures = bench.measure();
    if (group.is_root()) {
      print(bench, figures);
      if (!config.json.empty()) {
        replace_file(config.json, to_json(config, bench, figures));
      }
    }
  });
}

int bench_main(int argc, char** argv) {
  MpiBootstrap bootstrap(&argc, &argv);
  set_output_rank(bootstrap);
  BenchConfig config;
  bool goes_on = false;
  start_together(bootstrap, [&] {
    CommandLine cli("step_bench", "Times training steps under mpirun, on random tokens.");
    declare_step_options(cli, config.train);
    cli.option("--vocab-size", &config.vocab_size, "Symbols").at_least(2).group("Model");
    cli.option("--steps", &config.steps, "Measured steps of a round").at_least(1).group("Bench");
    cli.option("--rounds", &config.rounds, "Rounds of real steps, steps with nothing sent, sums")
        .at_least(1)
        .group("Bench");
    cli.option("--json", &config.json, "Also write the figures to this file").group("Bench");
    goes_on = cli.parse(argc, argv);
  });
  if (!goes_on) {
    return static_cast<int>(ExitCode::kDone);
  }
  try {
    run_bench(bootstrap, config);
    return static_cast<int>(ExitCode::kDone);
  } catch (...) {
    bootstrap.abandon();
    throw;
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("step_bench", lockstep::bench_main, argc, argv);
}
