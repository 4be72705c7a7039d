#pragma once

#include <map>
#include <string>

#include "core/device/cuda_device.h"
#include "trainer/config.h"
#include "trainer/device_facts.h"
#include "trainer/group.h"

// What trainer/device_facts.h has for the CPU, for a GPU. Only in a build with CUDA.

namespace lockstep {

DevicePlace place_of(const CudaStream& stream);
std::map<std::string, std::string> arithmetic(const CudaStream& stream);
MemorySupply memory_supply(const CudaStream& stream, const Group& group, const TrainConfig& config);
std::string predicted_step(const CudaStream& stream, const RunShape& shape);

/// A stream on this rank's GPU, which becomes the current one: use_rank_gpu. Collective.
CudaStream make_cuda_stream(const Group& group, const TrainConfig& config);

}  // namespace lockstep
