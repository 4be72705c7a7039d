#pragma once

#include <map>
#include <string>

#include "core/device/cpu_device.h"
#include "trainer/config.h"
#include "trainer/group.h"
#include "trainer/memory_plan.h"

// A device's stream and what a run asks of it, in words. Each device has these overloads: the GPU's
// are beside the trainer on it.

namespace lockstep {

/// Where a rank computes, to print.
struct DevicePlace {
  std::string device;          ///< "NVIDIA H200"
  std::string pci_id = {};     ///< empty: it is on no bus, and the next is empty too
  std::string numa_node = {};  ///< that the device is attached to
  bool is_on_bus() const { return !pci_id.empty(); }
};

/// A stream with the threads of --threads, or with this rank's share of the CPUs. Collective.
CpuStream make_cpu_stream(const Group& group, const TrainConfig& config);

DevicePlace place_of(const CpuStream& stream);
/// What decides the bits of results and must be equal on all ranks, by name.
std::map<std::string, std::string> arithmetic(const CpuStream& stream);
/// The memory that the ranks of this host have.
MemorySupply memory_supply(const CpuStream& stream, const Group& group, const TrainConfig& config);
/// What a step is predicted to take, as a line for a person, or that nothing is.
std::string predicted_step(const CpuStream& stream, const RunShape& shape);

}  // namespace lockstep
