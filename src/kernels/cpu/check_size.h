#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/error.h"

namespace lockstep {

/// Throws InternalError when an op's view holds fewer elements than its shape says.
inline void check_size(std::string_view view, int64_t size, int64_t needed) {
  LOCKSTEP_CHECK(size >= needed, "{} has {} elements; the shape needs {}", view, size, needed);
}

}  // namespace lockstep
