#include "comm/cuda/peer_claims.h"

#include <cuda_runtime_api.h>

#include <string>

#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

PeerClaim claim_of(int device, const CudaFacts& mine, const std::string& uuid,
                   const std::string& pci_id) {
  if (uuid == mine.uuid) {
    return PeerClaim::kSameGpu;
  }
  int other = 0;
  if (cudaDeviceGetByPCIBusId(&other, pci_id.c_str()) != cudaSuccess) {
    cudaGetLastError();  // it is not among the visible ones, which the mapping does not need
    return PeerClaim::kUnknown;
  }
  int can = 0;
  check_cuda(cudaDeviceCanAccessPeer(&can, device, other), "asking for access to another GPU");
  return can != 0 ? PeerClaim::kYes : PeerClaim::kNo;
}

}  // namespace

PeerVerdict gather_peer_claims(Bootstrap& bootstrap, const PeerTable& peers) {
  int device = 0;
  check_cuda(cudaGetDevice(&device), "reading the current GPU");
  const CudaFacts mine = cuda_facts(device);
  const std::vector<std::string> uuids = bootstrap.all_gather(mine.uuid);
  const std::vector<std::string> pci_ids = bootstrap.all_gather(mine.pci_id);

  const auto self = static_cast<size_t>(bootstrap.rank());
  std::string claims;
  for (size_t peer = 0; peer < peers.size(); ++peer) {
    const bool here = peers[peer].host_id == peers[self].host_id;
    claims += static_cast<char>(here ? claim_of(device, mine, uuids[peer], pci_ids[peer])
                                     : PeerClaim::kUnknown);
  }

  PeerVerdict verdict(bootstrap.world_size());
  const std::vector<std::string> all = bootstrap.all_gather(claims);
  for (size_t accessor = 0; accessor < peers.size(); ++accessor) {
    for (size_t owner = 0; owner < peers.size(); ++owner) {
      PeerPair& pair = verdict.pair(static_cast<int>(accessor), static_cast<int>(owner));
      pair.claim = static_cast<PeerClaim>(all[accessor][owner]);
      if (pair.claim == PeerClaim::kNo || peers[accessor].host_id != peers[owner].host_id) {
        pair.failed = ProbeStage::kIdentity;
      }
    }
  }
  return verdict;
}

}  // namespace lockstep
