#include "trainer/launch.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "comm/agreement.h"
#include "core/base/as_error.h"
#include "core/base/log.h"
#include "core/device/cuda_device.h"
#include "trainer/run_plan.h"
#include "trainer/trainer.h"

namespace lockstep {

void set_output_rank(const Bootstrap& bootstrap) {
  set_log_rank(bootstrap.rank(), bootstrap.world_size());
  if (bootstrap.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) {
    throw IoError("cannot open /dev/null");
  }
}

void start_together(Bootstrap& bootstrap, std::string_view program,
                    const std::function<void()>& start) {
  std::optional<Error> mine;
  try {
    start();
  } catch (const std::exception& exception) {
    mine = as_error(exception);
  }
  const std::string code = mine ? std::to_string(static_cast<int>(mine->code())) : std::string();
  const std::vector<std::string> codes = bootstrap.all_gather(code);
  for (size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank].empty()) {
      continue;
    }
    if (static_cast<int>(rank) == bootstrap.rank()) {
      log_error(program, mine->what());
    }
    // mpirun ends the others as soon as one has left: nobody leaves before the line is out.
    bootstrap.all_gather({});
    throw AbortedError(static_cast<ExitCode>(std::stoi(codes[rank])),
                       fmt::format("rank {} could not start", rank));
  }
}

void start_together(const Group& group, std::string_view program,
                    const std::function<void()>& start) {
  try {
    start_together(group.bootstrap, program, start);
  } catch (const AbortedError&) {
    group.control.finish();  // all leave, so that none takes another for lost
    throw;
  }
}

namespace {

/// Whether all ranks, which were told the same, are to run on GPUs.
bool chooses_cuda(const Group& group, const TrainConfig& config) {
  if (config.device != "auto") {
    return config.device == "cuda";
  }
  const std::vector<std::string> all = group.bootstrap.all_gather(cuda_available() ? "yes" : "no");
  const auto without = std::find(all.begin(), all.end(), "no");
  const auto with = std::find(all.begin(), all.end(), "yes");
  if (with != all.end() && without != all.end()) {
    throw UsageError(
        "--device auto: {} sees a GPU and {} does not: give --device cpu, or start ranks only "
        "where "
        "there are GPUs",
        rank_name(group.peers[static_cast<size_t>(with - all.begin())]),
        rank_name(group.peers[static_cast<size_t>(without - all.begin())]));
  }
  return with != all.end();
}

}  // namespace

bool runs_on_cuda(const Group& group, const TrainConfig& config) {
  const bool cuda = chooses_cuda(group, config);
  if (cuda) {
    require_cuda_device();
  } else if (config.precision != "fp32") {
    throw UsageError(
        "--precision {} is for the tensor cores of a GPU and this run is on the CPU: take "
        "--precision fp32, or --device cuda where there is one",
        config.precision);
  }
  return cuda;
}

ExitCode train(Bootstrap& bootstrap, const TrainConfig& config) {
  const PeerTable peers = gather_peer_table(bootstrap);
  ControlPlane control(bootstrap, peers, config.control());
  const Group group{bootstrap, peers, control};
  std::optional<RunPlan> plan;
  start_together(group, "trainer", [&] { plan.emplace(config, group.world_size()); });
  bool cuda = false;
  start_together(group, "trainer", [&] {
    check_agreement(bootstrap, plan->shared_facts(config));
    cuda = runs_on_cuda(group, config);
  });
  control.set_peer_timeout(config.peer_limit(cuda));
  return cuda ? train_on_cuda(group, config, *plan) : train_on_cpu(group, config, *plan);
}

}  // namespace lockstep
