#include "core/base/host_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void put(const fs::path& group, const std::string& limit, int64_t used, int64_t cache) {
  fs::create_directories(group);
  std::ofstream(group / "memory.max") << limit << '\n';
  std::ofstream(group / "memory.current") << used << '\n';
  std::ofstream(group / "memory.stat") << "anon 5\ninactive_file " << cache << "\nslab 7\n";
}

TEST(HostMemory, IsWhatIsLeftOfAGroupsLimit) {
  const TemporaryFolder folder;
  put(folder / "job", "1000", 700, 50);
  EXPECT_EQ(control_group_bytes("/job", folder.path()), 350);
  put(folder / "job", "1000", 1200, 50);
  EXPECT_EQ(control_group_bytes("/job", folder.path()), 0);
  put(folder / "job", "max", 700, 50);
  EXPECT_EQ(control_group_bytes("/job", folder.path()), std::nullopt);
  EXPECT_EQ(control_group_bytes("/nowhere", folder.path()), std::nullopt);
}

// As Slurm does it: the limit is of the job, the process in a group of its step's task.
TEST(HostMemory, HeedsTheLimitsOfEnclosingGroups) {
  const TemporaryFolder folder;
  put(folder / "slurm/job/step/task", "max", 10, 0);
  put(folder / "slurm/job/step", "5000", 10, 0);
  put(folder / "slurm/job", "1000", 700, 0);
  EXPECT_EQ(control_group_bytes("/slurm/job/step/task", folder.path()), 300);
  put(folder.path(), "100", 0, 0);  // the root that a container sees has its limit
  EXPECT_EQ(control_group_bytes("/slurm/job/step/task", folder.path()), 100);
  EXPECT_EQ(control_group_bytes("/", folder.path()), 100);
}

}  // namespace
}  // namespace lockstep
