#pragma once

#include <cstdint>
#include <optional>

#include "core/base/range.h"

namespace lockstep {

/// Joins gradient ranges, in the order in which backward finishes them, into buckets that are worth
/// a collective each. Ranges descend from the end of the window without a gap, so a bucket is one
/// contiguous view of it. Depends on nothing but sizes: every rank cuts the same buckets.
class BucketPlan {
 public:
  /// Ranges come down from `end`; a bucket is closed when it holds `min_elements`.
  BucketPlan(int64_t end, int64_t min_elements);

  /// Takes the next finished range, which must end where the one before began (InternalError
  /// otherwise); returns the bucket that it completes, if it does.
  std::optional<Range> add(Range ready);

  /// Ends a pass: returns the bucket of what is left, if anything is; the next range comes from
  /// `end` again. Throws InternalError when ranges down to 0 are missing: they would stay unsummed.
  std::optional<Range> flush();

 private:
  std::optional<Range> close();

  int64_t end_;
  int64_t min_elements_;
  Range open_;  ///< ready and in no bucket yet
};

}  // namespace lockstep
