#include <sys/resource.h>

#include "comm/cpu_threads.h"
#include "step_bench.h"
#include "step_bench_impl.h"

namespace lockstep {

StepFigures measure_on_cpu(const Group& group, const StepBenchConfig& config) {
  const int fair = default_threads(group.bootstrap,
                                   group.peers);  // collective, and --threads is each rank's own
  CpuStream stream(config.train.threads == 0 ? fair : static_cast<int>(config.train.threads));
  StepFigures figures = StepBench<CpuDevice>(group, config, stream).measure();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  figures.memory_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  return figures;
}

}  // namespace lockstep
