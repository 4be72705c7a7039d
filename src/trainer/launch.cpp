#include "trainer/launch.h"

#include <algorithm>
#include <optional>

#include "comm/agreement.h"
#include "comm/gpu_transport_select.h"
#include "comm/transport_select.h"
#include "core/device/cuda_device.h"
#include "trainer/run_plan.h"
#include "trainer/trainer.h"

namespace lockstep {

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
        "where there are GPUs",
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
    if (config.copy_engines) {
      check_copies(group.peers, transport_choice(config.transport));
    }
  } else if (config.precision != "fp32") {
    throw UsageError(
        "--precision {} is for the tensor cores of a GPU and this run is on the CPU: take "
        "--precision fp32, or --device cuda where there is one",
        config.precision);
  } else if (config.copy_engines) {
    throw UsageError("--copy-engines is for GPUs and this run is on the CPU: leave it out");
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
