#include "core/base/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// The number behind `name` in a file of lines "name number ...".
std::optional<int64_t> value_of(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word, line; file >> word; std::getline(file, line)) {
    int64_t value = 0;
    if (word == name && file >> value) {
      return value;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;  // "max" is no number: no limit
}

/// This process's, nothing when there is none of version 2.
std::optional<std::string> control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) {
      return line.substr(3);
    }
  }
  return std::nullopt;
}

/// Of one group alone. Page cache counts as used there but is given up for others.
std::optional<int64_t> left_in(const fs::path& group) {
  const auto limit = number_in(group / "memory.max");
  const auto used = number_in(group / "memory.current");
  if (!limit || !used) {
    return std::nullopt;
  }
  const int64_t cache = value_of(group / "memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(0, *limit - *used + cache);
}

}  // namespace

std::optional<int64_t> control_group_bytes(std::string_view group, const fs::path& root) {
  std::optional<int64_t> least = left_in(root);
  fs::path folder = root;
  for (const fs::path& name : fs::path(group).relative_path()) {
    folder /= name;
    if (const std::optional<int64_t> left = left_in(folder)) {
      least = std::min(*left, least.value_or(*left));
    }
  }
  return least;
}

int64_t available_host_bytes() {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  const auto kib = value_of("/proc/meminfo", "MemAvailable:");
  const auto group = control_group();
  const int64_t least = std::min(kib ? *kib * 1024 : kUnknown,
                                 group ? control_group_bytes(*group).value_or(kUnknown) : kUnknown);
  return least == kUnknown ? -1 : least;
}

}  // namespace lockstep
