// peer_probe: proves whether the GPUs of a host's ranks reach each other's memory, and says how
// fast.
#include "comm/control_plane.h"
#include "comm/mpi_bootstrap.h"
#include "comm/run_under.h"
#include "core/base/command_line.h"
#include "core/base/file.h"
#include "core/base/run_main.h"
#include "core/device/cuda_device.h"
#include "peer_probe_gpu.h"
#include "trainer/launch.h"

namespace lockstep {
namespace {

int peer_probe(int argc, char** argv) {
  MpiBootstrap bootstrap(&argc, &argv);
  set_output_rank(bootstrap);
  PeerProbeOptions options;
  bool goes_on = false;
  start_together(bootstrap, "peer_probe", [&] {
    CommandLine cli(
        "peer_probe",
        "Proves whether the GPUs of the ranks reach each other's memory, and how fast.");
    cli.usage("mpirun -np RANKS peer_probe [OPTIONS]");
    cli.option("--json", &options.json, "Write the figures there too").value_name("FILE");
    cli.flag("--share-gpu", &options.share_gpu, "Let several ranks take one GPU");
    cli.footer(
        "Exit codes: 0 when peer access is proven and used, 1 when the driver claims it and it "
        "fails or is slower than the way through the host, 10 when there is none or more ranks "
        "than "
        "it serves; others: docs/exit-codes.md.");
    goes_on = cli.parse(argc, argv);
    if (bootstrap.rank() == 0 && !options.json.empty()) {
      check_replaceable(options.json);
    }
  });
  if (!goes_on) {
    return static_cast<int>(ExitCode::kDone);
  }
  return bootstrap.run([&] {
    const PeerTable peers = gather_peer_table(bootstrap);
    ControlPlane control(bootstrap, peers, ControlOptions{});
    const Group group{bootstrap, peers, control};
    start_together(group, "peer_probe", require_cuda_device);
    int code = 0;
    run_under(control, [&] { code = probe_gpus(group, options); });
    return code;
  });
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("peer_probe", lockstep::peer_probe, argc, argv);
}
