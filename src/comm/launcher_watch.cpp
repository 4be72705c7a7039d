#include "comm/launcher_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace lockstep {
namespace {

// As /proc/<pid>/stat shows them: at most 15 bytes.
constexpr std::array<std::string_view, 10> kLaunchers = {
    "mpirun", "mpiexec",       "orterun",         "orted",      "prterun",
    "prted",  "mpiexec.hydra", "hydra_pmi_proxy", "slurmstepd", "prte"};

struct Process {
  std::string name;
  pid_t parent = 0;
};

/// From /proc/<pid>/stat: "pid (name) state parent ...", where the name may hold anything.
Process read_process(pid_t pid) {
  try {
    const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
    const size_t open = stat.find('(');
    const size_t close = stat.rfind(')');
    if (open != std::string::npos && close != std::string::npos && stat.size() > close + 4) {
      return {stat.substr(open + 1, close - open - 1),
              static_cast<pid_t>(std::strtol(stat.c_str() + close + 4, nullptr, 10))};
    }
  } catch (const IoError&) {
    // It ended, or /proc is not there: an ancestor that cannot be watched.
  }
  return {};
}

}  // namespace

LauncherWatch::LauncherWatch() {
  std::vector<UniqueFd> chain;
  for (pid_t pid = ::getppid(); pid > 1;) {
    const Process process = read_process(pid);
    chain.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!chain.back()) {
      return;
    }
    if (std::find(kLaunchers.begin(), kLaunchers.end(), process.name) != kLaunchers.end()) {
      processes_ = std::move(chain);
      return;
    }
    pid = process.parent;
  }
}

bool LauncherWatch::gone() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const UniqueFd& process) {
    pollfd entry{.fd = process.get(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
  });
}

}  // namespace lockstep
