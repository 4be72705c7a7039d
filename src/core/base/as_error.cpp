#include "core/base/as_error.h"

#include <new>

namespace lockstep {

Error as_error(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) {
    return *error;
  }
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return OutOfMemoryError("out of memory");
  }
  return InternalError("{}", exception.what());
}

}  // namespace lockstep
