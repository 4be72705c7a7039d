#include <sys/resource.h>

#include "step_bench.h"
#include "step_bench_impl.h"
#include "trainer/device_facts.h"

namespace lockstep {

StepFigures measure_on_cpu(const Group& group, const StepBenchConfig& config) {
  CpuStream stream = make_cpu_stream(group, config.train);
  StepFigures figures = StepBench<CpuDevice>(group, config, stream).measure();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  figures.memory_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  return figures;
}

}  // namespace lockstep
