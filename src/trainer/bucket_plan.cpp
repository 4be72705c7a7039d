#include "trainer/bucket_plan.h"

#include "core/base/error.h"

namespace lockstep {

BucketPlan::BucketPlan(int64_t end, int64_t min_elements)
    : end_(end), min_elements_(min_elements), open_{end, end} {}

std::optional<Range> BucketPlan::add(Range ready) {
  LOCKSTEP_CHECK(ready.end == open_.begin && ready.begin >= 0 && ready.begin <= ready.end,
                 "gradients [{}, {}) are ready, but what lies below {} is due", ready.begin,
                 ready.end, open_.begin);
  open_.begin = ready.begin;
  if (open_.size() < min_elements_) {
    return std::nullopt;
  }
  return close();
}

std::optional<Range> BucketPlan::flush() {
  LOCKSTEP_CHECK(open_.begin == 0, "the gradients below {} were never ready", open_.begin);
  std::optional<Range> rest = close();
  open_ = {end_, end_};
  return rest;
}

std::optional<Range> BucketPlan::close() {
  if (open_.empty()) {
    return std::nullopt;
  }
  const Range bucket = open_;
  open_.end = open_.begin;
  return bucket;
}

}  // namespace lockstep
