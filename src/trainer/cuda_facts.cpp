#include "trainer/cuda_facts.h"

#include <cstddef>
#include <iterator>
#include <optional>
#include <sstream>
#include <vector>

#include "core/base/numa_node.h"
#include "trainer/gpu_choice.h"
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

void use_rank_gpu(const Group& group, bool share) {
  require_cuda_device();
  std::string mine;
  for (int device = 0; device < cuda_device_count(); ++device) {
    mine += cuda_facts(device).uuid + " ";
  }
  const std::vector<std::string> all = group.bootstrap.all_gather(mine);
  std::vector<VisibleGpus> ranks;
  for (const PeerInfo& peer : group.peers) {
    std::istringstream uuids(all[static_cast<size_t>(peer.rank)]);
    ranks.push_back({peer.host_id, peer.host, {std::istream_iterator<std::string>(uuids), {}}});
  }
  use_cuda_device(choose_gpus(ranks, share)[static_cast<size_t>(group.rank())]);
}

CudaStream make_cuda_stream(const Group& group, const TrainConfig& config) {
  use_rank_gpu(group, config.share_gpu);
  return CudaStream(config.precision == "tf32" ? Precision::kTf32 : Precision::kFp32);
}

}  // namespace lockstep
