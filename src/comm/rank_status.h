#pragma once

#include <cstdint>
#include <string>

#include "comm/control_plane.h"

namespace lockstep {

/// What a rank was doing at some moment.
struct RankStatus {
  int64_t step = -1;  ///< -1: before the first one
  Phase phase = Phase::kStart;
  int bucket = -1;  ///< -1: none
};

/// "step 412, backward, bucket 3".
std::string describe(const RankStatus& status);

}  // namespace lockstep
