#include "core/base/as_error.h"

#include <filesystem>
#include <new>
#include <system_error>

namespace lockstep {

Error as_error(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) {
    return *error;
  }
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return OutOfMemoryError("out of memory");
  }
  if (const auto* of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&exception)) {
    return IoError("cannot use {}: {}", of_file->path1().string(), of_file->code().message());
  }
  if (const auto* refused = dynamic_cast<const std::system_error*>(&exception)) {
    if (refused->code() == std::errc::resource_unavailable_try_again) {
      return OutOfMemoryError(
          "cannot start a thread: {}; allow more processes (ulimit -u, or the container's "
          "limit) or memory (ulimit -v)",
          refused->what());
    }
    return IoError("{}", refused->what());
  }
  return InternalError("{}", exception.what());
}

}  // namespace lockstep
