#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace lockstep {

/// Bytes of host memory that this process can get without swapping: what the kernel estimates as
/// available, or control_group_bytes of the process's group when that is less. -1 when neither can
/// be read: then nothing is known.
int64_t available_host_bytes();

/// What is left below the limits of a control group (version 2, "/a/b" below `root`) and of the
/// groups that it lies in; nothing when none has a limit.
std::optional<int64_t> control_group_bytes(std::string_view group,
                                           const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace lockstep
