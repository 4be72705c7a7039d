// step_bench: what one training step costs, and what communication adds to it. Runs under mpirun on
// random tokens. The exposed time is the honest one: the step's time minus the time of the same
// step with the same hooks and buckets but nothing sent, all ranks running at the same time, so
// that contention between computing and communicating counts as exposed.
#include "step_bench.h"

#include <cstdio>
#include <map>
#include <string>

#include "comm/agreement.h"
#include "comm/mpi_bootstrap.h"
#include "comm/run_under.h"
#include "core/base/build_id.h"
#include "core/base/command_line.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/run_main.h"
#include "trainer/batch_plan.h"
#include "trainer/launch.h"

namespace lockstep {
namespace {

void print(const StepFigures& f) {
  const auto row = [](const char* name, Quantiles q) {
    fmt::print("{:<28}{:>10.3f} ms{:>10.3f} ms\n", name, 1e3 * q.median, 1e3 * q.p95);
  };
  fmt::print("{}\n{:<28}{:>13}{:>13}\n", f.title, "", "median", "p95");
  row("step", f.step);
  if (f.forward.median > 0) {
    row("  forward", f.forward);
    row("  backward", f.backward);
    row("  waiting for sums", f.waited);
    row("  optimizer", f.optimizer);
  }
  if (f.comm.median > 0) {
    row("step, nothing sent", f.nothing_sent);
    row("step, its record alone", f.in_step);
    if (f.after.median > 0) {
      row("step, sums after backward", f.after);
    }
    row("collectives alone", f.comm);
    fmt::print("exposed communication {:.3f} ms = step - step with nothing sent\n",
               1e3 * f.exposed());
    fmt::print("in step {:.3f} ms: ranks that wait for each other, with nothing else sent\n",
               1e3 * (f.in_step.median - f.nothing_sent.median));
    if (f.after.median > 0) {
      fmt::print("without overlap {:.3f} ms\n", 1e3 * f.exposed_without_overlap());
    }
  }
  fmt::print("memory {:.1f} MiB\n", static_cast<double>(f.memory_bytes) / (1 << 20));
  fmt::print("{:.0f} tok/s\n{}", static_cast<double>(f.tokens) / f.step.median, f.profile);
}

std::string to_json(const StepBenchConfig& config, const StepFigures& f) {
  const auto ms = [](const char* name, Quantiles q) {
    return fmt::format(R"("{0}_ms": {1:.4f}, "{0}_p95_ms": {2:.4f})", name, 1e3 * q.median,
                       1e3 * q.p95);
  };
  std::string options;
  for (const auto& [name, value] : config.train.step_options()) {
    options += fmt::format(R"({}"{}": "{}")", options.empty() ? "" : ", ", name, value);
  }
  return fmt::format(
      R"({{"bench": "step_bench", "build": "{}", "ranks": {}, "rank_batch": {},
 "transport": "{}", "device": "{}",
 "options": {{{}}},
 "steps": {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
 "exposed_ms": {:.4f}, "exposed_without_overlap_ms": {:.4f}, "tokens_per_second": {:.1f},
 "reduced_bytes": {}, "memory_bytes": {}}}
)",
      build_id(), f.ranks, f.rank_batch, f.transport, f.device, options,
      config.steps * config.rounds, ms("step", f.step), ms("forward", f.forward),
      ms("backward", f.backward), ms("waited", f.waited), ms("optimizer", f.optimizer),
      ms("replica", f.nothing_sent), ms("in_step", f.in_step), ms("after", f.after),
      ms("comm_alone", f.comm), 1e3 * f.exposed(), 1e3 * f.exposed_without_overlap(),
      static_cast<double>(f.tokens) / f.step.median, f.reduced_bytes, f.memory_bytes);
}

/// What ranks must have been told alike.
std::map<std::string, std::string> shared_facts(const StepBenchConfig& config) {
  std::map<std::string, std::string> facts = {{"--steps", std::to_string(config.steps)},
                                              {"--rounds", std::to_string(config.rounds)},
                                              {"--warmup", std::to_string(config.warmup)},
                                              {"--vocab-size", std::to_string(config.vocab_size)},
                                              {"--profile", config.profile ? "yes" : "no"}};
  for (const auto& [name, value] : config.train.step_options()) {
    facts["--" + name] = value;
  }
  for (const char* own : {"--threads", "--bind-address"}) {
    facts.erase(own);
  }
  return facts;
}

void run_bench(Bootstrap& bootstrap, const StepBenchConfig& config) {
  const PeerTable peers = gather_peer_table(bootstrap);
  ControlPlane control(bootstrap, peers, config.train.control());
  const Group group{bootstrap, peers, control};
  bool cuda = false;
  start_together(group, "step_bench", [&] {
    check_agreement(bootstrap, shared_facts(config));
    cuda = runs_on_cuda(group, config.train);
    if (config.profile && !cuda) {
      throw UsageError("--profile is for --device cuda");
    }
  });
  control.set_peer_timeout(config.train.peer_limit(cuda));
  run_under(control, [&] {
    const StepFigures figures =
        cuda ? measure_on_cuda(group, config) : measure_on_cpu(group, config);
    if (group.is_root()) {
      print(figures);
      if (!config.json.empty()) {
        replace_file(config.json, to_json(config, figures));
      }
    }
  });
}

int bench_main(int argc, char** argv) {
  MpiBootstrap bootstrap(&argc, &argv);
  set_output_rank(bootstrap);
  StepBenchConfig config;
  bool goes_on = false;
  start_together(bootstrap, "step_bench", [&] {
    CommandLine cli("step_bench", "Times training steps under mpirun, on random tokens.");
    cli.usage("mpirun -np RANKS step_bench [OPTIONS]");
    declare_step_options(cli, config.train);
    cli.option("--vocab-size", &config.vocab_size, "Symbols")
        .at_least(2)
        .at_most(1e9)
        .group("Model");
    cli.option("--steps", &config.steps, "Measured steps of a round")
        .at_least(1)
        .at_most(1e6)
        .group("Bench");
    cli.option("--rounds", &config.rounds,
               "Rounds of real steps and of their twins, of which some send nothing")
        .at_least(1)
        .at_most(1e6)
        .group("Bench");
    cli.option("--warmup", &config.warmup,
               "Steps ahead of the first round: a GPU at its power limit takes seconds to settle")
        .at_least(0)
        .at_most(1e6)
        .group("Bench");
    cli.option("--json", &config.json, "Also write the figures to this file")
        .value_name("FILE")
        .group("Bench");
    cli.flag("--profile", &config.profile, "On a GPU, time the parts of a step and each op too")
        .group("Bench");
    goes_on = cli.parse(argc, argv);
    config.train.validate();
    config.train.model(config.vocab_size);  // throws what is wrong with it
    plan_batch(config.train.batch_size, config.train.global_batch_size,
               config.train.gradient_accumulation_steps, bootstrap.world_size());
    if (bootstrap.rank() == 0 && !config.json.empty()) {
      check_replaceable(config.json);
    }
  });
  if (!goes_on) {
    return static_cast<int>(ExitCode::kDone);
  }
  bootstrap.run([&] { run_bench(bootstrap, config); });
  return static_cast<int>(ExitCode::kDone);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("step_bench", lockstep::bench_main, argc, argv);
}
