#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

/// The NUMA node that a PCI device ("0000:18:00.0", or with a domain of eight digits) is attached
/// to, as the kernel says in its folder of devices; nothing when it knows none.
std::optional<int> numa_node_of(const std::string& pci_id,
                                const std::filesystem::path& devices = "/sys/bus/pci/devices");

}  // namespace lockstep
