#include "trainer/cuda_facts.h"

#include <fmt/core.h>

#include <cstddef>
#include <optional>
#include <sstream>
#include <vector>

#include "core/base/numa_node.h"
#include "trainer/gpu_choice.h"

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

CudaStream make_cuda_stream(const Group& group, const TrainConfig& config) {
  require_cuda_device();
  const int visible = cuda_device_count();
  const int device = group.self().local_rank % visible;
  const std::vector<std::string> all =
      group.bootstrap.all_gather(fmt::format("{} {}", visible, cuda_facts(device).uuid));
  std::vector<GpuChoice> choices;
  for (const PeerInfo& peer : group.peers) {
    GpuChoice choice;
    choice.host_id = peer.host_id;
    choice.host = peer.host;
    std::istringstream(all[static_cast<size_t>(peer.rank)]) >> choice.visible >> choice.uuid;
    choices.push_back(choice);
  }
  check_gpu_choices(choices, config.share_gpu);
  use_cuda_device(device);
  return CudaStream(config.precision == "tf32" ? Precision::kTf32 : Precision::kFp32);
}

}  // namespace lockstep
