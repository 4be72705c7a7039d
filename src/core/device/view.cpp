#include "core/device/view.h"

#include "core/base/error.h"

namespace lockstep::internal {

void check_subview(Range range, int64_t size) {
  LOCKSTEP_CHECK(range.begin >= 0 && range.begin <= range.end && range.end <= size,
                 "[{}, {}) of {} elements", range.begin, range.end, size);
}

void check_copy(int64_t to, int64_t from) {
  LOCKSTEP_CHECK(from >= to, "a copy of {} elements from a view of {}", to, from);
}

}  // namespace lockstep::internal
