#include "trainer/cuda_device_facts.h"

#include <optional>

#include "comm/cuda/rank_gpu.h"
#include "core/base/numa_node.h"
#include "trainer/step_time.h"

namespace lockstep {

DevicePlace place_of(const CudaStream& stream) {
  const CudaFacts& facts = stream.facts();
  const std::optional<int> node = numa_node_of(facts.pci_id);
  return {facts.name, facts.pci_id, node ? std::to_string(*node) : "-"};
}

std::map<std::string, std::string> arithmetic(const CudaStream& stream) {
  return {{"GPU", stream.facts().name}};
}

MemorySupply memory_supply(const CudaStream& stream, const Group& /*group*/) {
  return {"on the " + stream.facts().name, CudaDevice::free_bytes(), 1};
}

std::string predicted_step(const CudaStream& stream, const RunShape& shape) {
  return step_time_report({.model = shape.model,
                           .batch = shape.batch.batch_size,
                           .micro_steps = shape.batch.accumulation_steps,
                           .precision = stream.precision()},
                          stream.facts());
}

CudaStream make_cuda_stream(const Group& group, const TrainConfig& config) {
  use_rank_gpu(group.bootstrap, group.peers, config.share_gpu);
  return CudaStream(config.precision == "tf32" ? Precision::kTf32 : Precision::kFp32);
}

}  // namespace lockstep
