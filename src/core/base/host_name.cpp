#include "core/base/host_name.h"

#include <unistd.h>

#include <array>
#include <climits>

namespace lockstep {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
    return "unknown-host";
  }
  return name.data();
}

}  // namespace lockstep
