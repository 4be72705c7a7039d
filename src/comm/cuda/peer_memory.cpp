#include "comm/cuda/peer_memory.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <exception>
#include <string>

#include "core/base/error.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"

namespace lockstep {
namespace {

// The driver hands out smaller allocations from blocks of this size, and a handle maps the whole
// block: an allocation of whole blocks is alone in its own.
constexpr int64_t kBlockBytes = 2 << 20;

int64_t whole_blocks(int64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

}  // namespace

PeerMemory::PeerMemory(Bootstrap& bootstrap, const PeerTable& peers, int64_t bytes)
    : rank_(bootstrap.rank()), bytes_(whole_blocks(bytes)), mapped_(peers.size(), nullptr) {
  auto* const own = static_cast<std::byte*>(CudaDevice::allocate(bytes_));
  mapped_[static_cast<size_t>(rank_)] = own;

  std::string problem;  // "rank 1 (host a, pid 9): reason", of the first that cannot be mapped
  cudaIpcMemHandle_t handle{};
  const cudaError_t exported = cudaIpcGetMemHandle(&handle, own);
  const std::string mine(reinterpret_cast<const char*>(&handle),
                         exported == cudaSuccess ? sizeof(handle) : 0);
  const std::vector<std::string> handles = bootstrap.all_gather(mine);
  for (size_t peer = 0; peer < peers.size() && problem.empty(); ++peer) {
    if (handles[peer].size() != sizeof(handle)) {
      problem = rank_name(peers[peer]) + ": its GPU memory cannot be shared";
    } else if (static_cast<int>(peer) != rank_) {
      void* address = nullptr;
      std::memcpy(&handle, handles[peer].data(), sizeof(handle));
      const cudaError_t opened =
          cudaIpcOpenMemHandle(&address, handle, cudaIpcMemLazyEnablePeerAccess);
      if (opened != cudaSuccess) {
        problem = rank_name(peers[peer]) + ": " + cudaGetErrorString(opened);
      }
      mapped_[peer] = static_cast<std::byte*>(address);
    }
  }
  cudaGetLastError();  // a failure above is no error of what follows

  const std::vector<std::string> problems = bootstrap.all_gather(problem);
  for (size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty()) {
      leave(bootstrap, [] { return false; });
      throw UnsupportedError("{} cannot map the GPU memory of {}", rank_name(peers[rank]),
                             problems[rank]);
    }
  }
}

PeerMemory::~PeerMemory() {
  unmap();
}

void PeerMemory::leave(Bootstrap& bootstrap, const std::function<bool()>& over) noexcept {
  std::byte* const own = of(rank_);
  unmap();
  try {
    if (bootstrap.barrier_unless(over)) {
      CudaDevice::deallocate(own, bytes_);
    }
  } catch (const std::exception&) {
    // A rank is gone; others may still be at work in what it leaves to the driver.
  }
}

void PeerMemory::unmap() noexcept {
  for (size_t peer = 0; peer < mapped_.size(); ++peer) {
    if (mapped_[peer] != nullptr && static_cast<int>(peer) != rank_) {
      cudaIpcCloseMemHandle(mapped_[peer]);
    }
    mapped_[peer] = nullptr;
  }
}

}  // namespace lockstep
