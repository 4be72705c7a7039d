#include "comm/cuda/rank_gpu.h"

#include <cstddef>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "comm/gpu_choice.h"
#include "core/device/cuda_device.h"

namespace lockstep {

void use_rank_gpu(Bootstrap& bootstrap, const PeerTable& peers, bool share) {
  require_cuda_device();
  std::string mine;
  for (int device = 0; device < cuda_device_count(); ++device) {
    mine += cuda_facts(device).uuid + " ";
  }
  const std::vector<std::string> all = bootstrap.all_gather(mine);
  std::vector<VisibleGpus> ranks;
  for (const PeerInfo& peer : peers) {
    std::istringstream uuids(all[static_cast<size_t>(peer.rank)]);
    ranks.push_back({peer.host_id, peer.host, {std::istream_iterator<std::string>(uuids), {}}});
  }
  use_cuda_device(choose_gpus(ranks, share)[static_cast<size_t>(bootstrap.rank())]);
}

}  // namespace lockstep
