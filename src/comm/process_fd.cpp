#include "comm/process_fd.h"

#include <fcntl.h>
#include <fmt/core.h>

namespace lockstep {

UniqueFd open_fd_of(int64_t pid, int fd, int flags) {
  return UniqueFd(
      ::open(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), flags | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace lockstep
