#include "core/base/numa_node.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace lockstep {

std::optional<int> numa_node_of(const std::string& pci_id, const std::filesystem::path& devices) {
  constexpr size_t kLongDomain = 8;
  std::string name = pci_id;
  if (name.find(':') == kLongDomain) {
    name.erase(0, kLongDomain / 2);
  }
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  std::ifstream file(devices / name / "numa_node");
  int node = -1;
  if (file >> node && node >= 0) {
    return node;
  }
  return std::nullopt;
}

}  // namespace lockstep
