// mma_rate: what the tensor cores do of mma.sync.m16n8k8 in TF32 when nothing but registers feeds
// them: the ceiling of the ladder's rungs that use it.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/build_id.h"
#include "core/base/command_line.h"
#include "core/base/run_main.h"
#include "graph_timer.h"
#include "mma_rate_kernels.h"

namespace lockstep {
namespace {

void measure() {
  require_cuda_device();
  const CudaFacts facts = cuda_facts(0);
  const SmClock clock(facts.pci_id);
  CudaStream stream;
  const std::vector<MmaRateCase> cases = mma_rate_cases();
  int most_warps = 0;
  for (const MmaRateCase& one : cases) {
    most_warps = std::max(most_warps, one.warps);
  }
  CudaBuffer<float> out(int64_t{facts.multiprocessors} * most_warps * 32);
  std::vector<std::function<void()>> bodies;
  bodies.reserve(cases.size());
  for (const MmaRateCase& one : cases) {
    bodies.emplace_back([&] { one.launch(stream, out.view(), facts.multiprocessors); });
  }
  constexpr double kSeconds = 3;
  const std::vector<GraphTimer::Figures> figures = GraphTimer(stream, clock, kSeconds).run(bodies);

  fmt::print("# {}, {} multiprocessors, driver {}, build {}\n", facts.name, facts.multiprocessors,
             clock.driver(), build_id());
  fmt::print("{:<26} {:>6} {:>9} {:>11}\n", "mma.sync m16n8k8 TF32", "warps", "TFLOP/s", "SM MHz");
  for (size_t i = 0; i < cases.size(); ++i) {
    const double flop = cases[i].mma * cases[i].warps * facts.multiprocessors * 2 * 16 * 8 * 8;
    fmt::print("{:<26} {:>6} {:>9.1f} {:>5}-{:<5} {}\n", cases[i].what, cases[i].warps,
               flop / figures[i].seconds() * 1e-12, figures[i].lowest_mhz, figures[i].highest_mhz,
               figures[i].clock());
  }
}

int run(int argc, char** argv) {
  CommandLine cli("mma_rate", "Measures mma.sync in TF32, fed from registers alone, on a GPU.");
  if (cli.parse(argc, argv)) {
    measure();
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_main("mma_rate", lockstep::run, argc, argv);
}
