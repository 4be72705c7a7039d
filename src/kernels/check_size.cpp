#include "kernels/check_size.h"

#include "core/base/error.h"

namespace lockstep {

void check_size(std::string_view view, int64_t size, int64_t needed) {
  LOCKSTEP_CHECK(size >= needed, "{} has {} elements; the shape needs {}", view, size, needed);
}

}  // namespace lockstep
