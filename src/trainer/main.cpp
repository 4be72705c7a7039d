// trainer: data-parallel GPT training. `mpirun -np N trainer` is the whole interface; --help lists
// the options, configs/ holds recipes.
#include "comm/mpi_bootstrap.h"
#include "core/base/command_line.h"
#include "core/base/run_main.h"
#include "trainer/batch_plan.h"
#include "trainer/config.h"
#include "trainer/launch.h"
#include "trainer/signals.h"

namespace lockstep {
namespace {

int trainer_main(int argc, char** argv) {
  MpiBootstrap bootstrap(&argc, &argv);
  set_output_rank(bootstrap);
  TrainConfig config;
  bool goes_on = false;
  start_together(bootstrap, "trainer", [&] {
    CommandLine cli("trainer", "Trains a GPT, data-parallel over the ranks that mpirun starts.");
    cli.usage("mpirun -np RANKS trainer [OPTIONS]");
    declare_options(cli, config);
    cli.footer(
        "[...]: the default. Exit codes: docs/exit-codes.md. 75: stopped by a signal after "
        "saving.");
    goes_on = cli.parse(argc, argv);
    config.validate();
    plan_batch(config.batch_size, config.global_batch_size, config.gradient_accumulation_steps,
               bootstrap.world_size());
  });
  if (!goes_on) {
    return static_cast<int>(ExitCode::kDone);
  }
  catch_stop_signals();
  return bootstrap.run([&] { return static_cast<int>(train(bootstrap, config)); });
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("trainer", lockstep::trainer_main, argc, argv);
}
