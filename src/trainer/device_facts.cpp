#include "trainer/device_facts.h"

#include <fmt/core.h>

#include "comm/cpu_threads.h"
#include "kernels/cpu/isa.h"

namespace lockstep {

CpuStream make_cpu_stream(const Group& group, const TrainConfig& config) {
  const int fair = default_threads(group.bootstrap, group.peers);  // --threads is each rank's own
  return CpuStream(config.threads == 0 ? fair : static_cast<int>(config.threads));
}

DevicePlace place_of(const CpuStream& stream) {
  DevicePlace place;
  place.device = fmt::format("cpu, {} thread{}, {}", stream.threads(),
                             stream.threads() == 1 ? "" : "s", isa_name(cpu_isa()));
  return place;
}

std::map<std::string, std::string> arithmetic(const CpuStream& /*stream*/) {
  return {{"instruction set", std::string(isa_name(cpu_isa()))}};
}

MemorySupply memory_supply(const CpuStream& /*stream*/, const Group& group,
                           const TrainConfig& /*config*/) {
  return {.device = "on this host",
          .free = CpuDevice::free_bytes(),
          .ranks = group.self().local_size,
          .holds_checkpoints = true};
}

std::string predicted_step(const CpuStream& /*stream*/, const RunShape& /*shape*/) {
  return "a step's time is not predicted on a CPU";
}

}  // namespace lockstep
