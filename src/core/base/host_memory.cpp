#include "core/base/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace lockstep {
namespace {

/// The number behind `name` in a file of lines "name number ...".
std::optional<int64_t> value_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word, line; file >> word; std::getline(file, line)) {
    int64_t value = 0;
    if (word == name && file >> value) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;  // "max" is no number: no limit
}

/// The folder of this process's control group, "" when there is none of version 2.
std::string control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) {
      return "/sys/fs/cgroup" + line.substr(3);
    }
  }
  return "";
}

/// What is left below a group's limit; page cache counts as used there but is given up for others.
std::optional<int64_t> left_in(const std::string& group) {
  const auto limit = number_in(group + "/memory.max");
  const auto used = number_in(group + "/memory.current");
  if (!limit || !used) {
    return std::nullopt;
  }
  const int64_t cache = value_of(group + "/memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(0, *limit - *used + cache);
}

}  // namespace

int64_t available_host_bytes() {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  const auto kib = value_of("/proc/meminfo", "MemAvailable:");
  const int64_t host = kib ? *kib * 1024 : kUnknown;
  const std::string group = control_group();
  const int64_t least =
      std::min(host, group.empty() ? kUnknown : left_in(group).value_or(kUnknown));
  return least == kUnknown ? -1 : least;
}

}  // namespace lockstep
