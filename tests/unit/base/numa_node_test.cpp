#include "core/base/numa_node.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& devices, const std::string& pci_id, const std::string& text) {
  fs::create_directories(devices / pci_id);
  std::ofstream(devices / pci_id / "numa_node") << text;
}

TEST(NumaNode, IsWhatTheKernelSaysOfTheDevice) {
  const TemporaryFolder folder;
  put(folder.path(), "0000:1b:00.0", "1\n");
  put(folder.path(), "0000:18:00.0", "-1\n");
  EXPECT_EQ(numa_node_of("0000:1B:00.0", folder.path()), 1);
  EXPECT_EQ(numa_node_of("00000000:1B:00.0", folder.path()), 1);
  EXPECT_EQ(numa_node_of("0000:18:00.0", folder.path()), std::nullopt);
  EXPECT_EQ(numa_node_of("0000:19:00.0", folder.path()), std::nullopt);
}

}  // namespace
}  // namespace lockstep
