#include <sys/resource.h>

#include "step_bench.h"
#include "step_bench_impl.h"
#include "trainer/cpu_threads.h"

namespace lockstep {

/// The most that the process held.
static int64_t memory_used(const CpuStream& /*stream*/) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

StepFigures measure_on_cpu(const Group& group, const StepBenchConfig& config) {
  CpuStream stream(config.train.threads == 0 ? default_threads(group)
                                             : static_cast<int>(config.train.threads));
  return StepBench<CpuDevice>(group, config, stream).measure();
}

}  // namespace lockstep
