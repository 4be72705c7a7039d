#include "comm/cuda/staged_region.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "core/device/cuda_error.h"

namespace lockstep {

PinnedRegion::PinnedRegion(ShmRegion memory) : memory_(std::move(memory)) {
  check_cuda(cudaHostRegister(memory_.window(), sizeof(StagedRegion), cudaHostRegisterMapped),
             "locking the pages of memory shared by two ranks");
}

PinnedRegion::~PinnedRegion() {
  cudaHostUnregister(memory_.window());
}

}  // namespace lockstep
