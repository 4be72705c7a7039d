#include "core/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <string>

namespace lockstep {
namespace {

std::string g_prefix;  // NOLINT(readability-identifier-naming): written once at start

}  // namespace

void set_log_rank(int rank, int world_size) {
  g_prefix = world_size > 1 ? fmt::format("[rank {}] ", rank) : std::string();
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return shown;
}

void log_line(std::string_view text) {
  const std::string line = g_prefix + printable(text) + '\n';
  // A log line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void log_error(std::string_view program, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  log("{}: {}", program, message);
}

}  // namespace lockstep
